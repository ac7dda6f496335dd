internal import NIOCore

/// What responses of enveloped messages have in common: the streams of Connect, and all calls of gRPC and gRPC-Web. The
/// decoder of a protocol adds how a response ends, and what a body with another status than 200 says.
struct EnvelopedResponse {
  enum Part {
    /// The headers, or a message.
    case result(StreamResult<ByteBuffer>)
    /// The decompressed message of the envelope with the end flag.
    case end(ByteBuffer)
  }

  enum Input {
    case open
    case ended(trailers: Headers)
    case failed(ConnectError)
  }

  private enum Output {
    case open
    case failing(ConnectError)
    case finished
  }

  private let endFlag: UInt8
  private let maximumMessageSize: Int
  private let maximumEndSize: Int
  private let acceptedEncodings: AcceptedEncodings
  private var encoding: ResponseEncoding

  private(set) var head: HTTPResponseHead?
  private var isHeadDelivered = false
  private var hasEnd = false
  private var envelopes: EnvelopeDecoder
  private(set) var input = Input.open
  private var output = Output.open

  /// - Parameters:
  ///   - encodingHeader: The header that names the encoding of messages.
  ///   - endFlag: The flag of the envelope that ends the body; 0 if the protocol has no such envelope.
  ///   - maximumMessageSize: The limit for a message, in bytes.
  ///   - maximumEndSize: The limit for the message of the envelope with `endFlag`, in bytes.
  init(
    encodingHeader: String,
    endFlag: UInt8,
    maximumMessageSize: Int,
    maximumEndSize: Int,
    acceptedEncodings: AcceptedEncodings,
    buffers: BodyBuffers?
  ) {
    self.endFlag = endFlag
    self.maximumMessageSize = maximumMessageSize
    self.maximumEndSize = maximumEndSize
    self.acceptedEncodings = acceptedEncodings
    self.encoding = ResponseEncoding(pool: nil, header: encodingHeader)
    self.envelopes = EnvelopeDecoder(
      maximumMessageSize: maximumMessageSize,
      endFlag: endFlag,
      maximumEndSize: maximumEndSize,
      buffers: buffers
    )
  }

  // MARK: Input

  var bufferedByteCount: Int { self.envelopes.bufferedByteCount }

  /// The head of a response whose body is still read; nil if the bytes of the body are to be ignored.
  var openHead: HTTPResponseHead? {
    guard case .open = self.output, case .open = self.input else { return nil }
    return self.head
  }

  /// - Parameter contentTypeError: What is wrong with the content-type of a response with status 200.
  mutating func receive(_ head: HTTPResponseHead, contentTypeError: ConnectError?) {
    guard case .open = self.output, case .open = self.input, self.head == nil else { return }
    self.head = head
    guard head.status == 200 else { return }
    do throws(ConnectError) {
      if let contentTypeError { throw contentTypeError }
      self.encoding = try self.acceptedEncodings.encoding(of: head.headers, header: self.encoding.header)
    } catch {
      self.output = .failing(error)
    }
  }

  /// Takes the next bytes of a body with status 200 that ``openHead`` says is still read.
  mutating func receive(_ bytes: ByteBuffer) { self.envelopes.receive(bytes) }

  mutating func receiveEnd(trailers: Headers) {
    guard case .open = self.input else { return }
    self.input = .ended(trailers: trailers)
  }

  mutating func fail(_ error: ConnectError) {
    guard case .open = self.input else { return }
    self.input = .failed(error)
  }

  /// Lets ``next()`` throw `error` after the headers, whatever else arrives.
  mutating func reject(with error: ConnectError) {
    self.discard()
    self.output = .failing(error)
  }

  // MARK: Output

  /// Whether the decoder has given the end.
  var isFinished: Bool {
    if case .finished = self.output { true } else { false }
  }

  mutating func finish() { self.output = .finished }

  /// The next part; nil if more has to arrive, or if the end was reached.
  mutating func next() throws(ConnectError) -> Part? {
    if let head = self.head, !self.isHeadDelivered {
      self.isHeadDelivered = true
      return .result(.headers(head.headers))
    }
    if case .failing(let error) = self.output { throw error }
    guard !self.hasEnd, let envelope = try self.envelopes.next() else { return nil }
    guard envelope.flags & ~(Envelope.compressedFlag | self.endFlag) == 0 else {
      throw ConnectError(
        code: .internalError,
        message:
          "received a message with unknown flags \(envelope.flags): does the server speak another protocol?"
      )
    }
    guard envelope.flags & self.endFlag != 0 else {
      return .result(.message(try self.encoding.message(of: envelope, maximumSize: self.maximumMessageSize)))
    }
    self.hasEnd = true
    return .end(try self.encoding.message(of: envelope, maximumSize: self.maximumEndSize))
  }

  mutating func nextPlainMessage() -> ByteBuffer? {
    guard self.isHeadDelivered, !self.hasEnd, case .open = self.output else { return nil }
    return self.envelopes.nextPlainMessage()
  }

  mutating func settle() { self.envelopes.settle() }

  /// Drops what is buffered.
  mutating func discard() { self.envelopes.discard() }

  /// The error for bytes that are left when the body has ended, or that follow the envelope with the end flag. Nil if
  /// there are none.
  ///
  /// - Parameter end: The name of that envelope's message.
  func excessError(behind end: String) -> ConnectError? {
    let count = self.envelopes.bufferedByteCount
    guard count > 0 else { return nil }
    return ConnectError(
      code: .internalError,
      message: self.hasEnd
        ? "received \(count) bytes behind the \(end)" : "response ended in the middle of a message"
    )
  }
}
