internal import Logging
internal import NIOCore

/// The response of one attempt: buffers what has arrived, and decodes results on demand. Confined to the call's
/// executor.
///
/// ``DecodedResponse`` has the decoder of a protocol.
class ResponseReader {
  /// How many bytes may be taken before the transport is told, while more bytes are buffered.
  private static let consumptionStep = 16 * 1024

  /// The status and headers as they arrived.
  final private(set) var head: HTTPResponseHead?
  /// Bytes that have arrived, and that were not yet reported to the transport as consumed.
  private var unconsumedBytes = 0
  /// What was changed in texts of the response; known at the end.
  private var receivedText = ReceivedText()
  /// What ``next(from:)`` or ``takeSingle(from:of:)`` has given.
  final var lent = LentMessage()
  /// Whether ``lent`` has a message. Apart from it, since each message looks at this.
  final var hasLent = false
  /// Makes one response of the results, for unary calls.
  private var collector: SingleMessageCollector?

  // MARK: What arrives

  final func receive(_ head: HTTPResponseHead) {
    if self.head == nil { self.head = head }
    self.decode(head)
  }

  final func receive(_ bytes: ByteBuffer) {
    self.unconsumedBytes += bytes.readableBytes
    self.decode(bytes)
  }

  // MARK: Results

  /// The next result; nil if more has to arrive. Then all bytes are reported as consumed, so that more can arrive.
  ///
  /// - Parameter stream: Told what was consumed.
  final func next(from stream: (any HTTPStream)?) -> ResultPart? {
    if let message = self.nextPlainMessage() {
      self.consume(from: stream)
      if message.readableBytes >= BodyBuffers.smallestSize {
        self.lent.keep(message)
        self.hasLent = true
      }
      return .bytes(message)
    }
    let result: ResultPart? =
      switch self.nextResult() {
      case .headers(let headers): .headers(headers)
      case .message(let bytes): .bytes(bytes)
      case .complete(_, let error, let trailers): self.end(error, trailers)
      case nil: nil
      }
    if result == nil {
      self.consumeAll(from: stream)
    } else {
      self.consume(from: stream)
    }
    if case .bytes(let message)? = result, message.readableBytes >= BodyBuffers.smallestSize {
      self.lent.keep(message)
      self.hasLent = true
    }
    return result
  }

  private func end(_ error: ConnectError?, _ trailers: Headers) -> ResultPart {
    self.receivedText = self.takeReceivedText()
    return .end(error, trailers: trailers)
  }

  /// The response of a unary call; nil if more has to arrive.
  final func takeSingle(from stream: (any HTTPStream)?, of method: MethodInfo) -> SingleMessage? {
    if let whole = self.takeWhole() {
      switch whole.result {
      case .success(.bytes(let message)):
        if message.readableBytes >= BodyBuffers.smallestSize {
          self.lent.keep(message)
          self.hasLent = true
        }
      case .success: break
      case .failure: self.receivedText = self.takeReceivedText()
      }
      return whole
    }
    // Moved out and back, so that each exclusive access to the variable ends at once.
    var collector = self.collector ?? SingleMessageCollector(method: method)
    self.collector = nil
    while let result = self.next(from: stream) {
      if let single = collector.receive(result) { return single }
    }
    self.collector = collector
    return nil
  }

  /// Reports all bytes as consumed, since more has to arrive.
  final func consumeAll(from stream: (any HTTPStream)?) {
    guard self.unconsumedBytes > 0 else { return }
    let consumed = self.unconsumedBytes
    self.unconsumedBytes = 0
    stream?.consume(consumed)
  }

  private func consume(from stream: (any HTTPStream)?) {
    // Most messages end here.
    guard self.unconsumedBytes >= Self.consumptionStep else { return }
    let consumed = self.unconsumedBytes - self.bufferedByteCount
    guard consumed >= Self.consumptionStep else { return }
    self.unconsumedBytes -= consumed
    stream?.consume(consumed)
  }

  /// Says in the log what was changed in texts of the response. To be called at the end.
  final func noteReceivedText(in logger: Logger, _ method: MethodInfo) {
    self.receivedText.note(in: logger, method)
  }

  final var hasChangedText: Bool { !self.receivedText.isUnchanged }

  // MARK: For byte hooks

  /// Whether the response says that the version named in the request is still current. This is no error.
  final func isNotModified(for request: RequestHead) -> Bool {
    self.head?.status == 304 && request.headers.contains("if-none-match")
  }

  /// The response of a unary call.
  final func makeResponse(_ single: SingleMessage, to request: RequestHead) -> HTTPResponse {
    var message = ByteBuffer()
    var error: ConnectError?
    switch single.result {
    case .success(.bytes(let bytes)): message = bytes
    case .success: break
    case .failure(let failure): error = self.isNotModified(for: request) ? nil : failure
    }
    let body = error == nil ? nil : self.takeWholeBody()
    let head = self.head
    if error != nil, error?.httpStatus == nil { error?.httpStatus = head?.status }
    return HTTPResponse(
      headers: single.headers,
      message: body ?? message,
      trailers: single.trailers,
      error: error,
      httpStatus: head?.status,
      httpHeaders: head?.headers ?? Headers(),
      request: request,
      isParsed: body != nil
    )
  }

  // MARK: The decoder

  /// These are as in ``ResponseDecoder``.
  func decode(_ head: HTTPResponseHead) {}
  func decode(_ bytes: ByteBuffer) {}
  func receiveEnd(trailers: Headers) {}
  func fail(_ error: ConnectError) {}
  func nextResult() -> StreamResult<ByteBuffer>? { nil }
  func nextPlainMessage() -> ByteBuffer? { nil }
  func takeWhole() -> SingleMessage? { nil }
  func awaitsEnd() -> Bool { false }
  func settle() {}
  func takeReceivedText() -> ReceivedText { ReceivedText() }
  var bufferedByteCount: Int { 0 }
  /// The body of a response in which the protocol has found an error; nil unless a parser is to read it.
  func takeWholeBody() -> ByteBuffer? { nil }
}

/// A response with its decoder, which is changed in place and never copied.
final class DecodedResponse<Decoder: ResponseDecoder>: ResponseReader {
  /// `@exclusivity(unchecked)`: decoders are large structs, and taking one out for each change costs more than the run-time
  /// check. Accesses do not overlap: a `CompressionPool` is the only code of users that a decoder calls. A pool may end the
  /// call, which then does not use the decoder. It must do nothing else with the call.
  @exclusivity(unchecked) private var decoder: Decoder

  init(_ decoder: consuming Decoder) {
    self.decoder = decoder
  }

  override func decode(_ head: HTTPResponseHead) { self.decoder.receive(head) }
  override func decode(_ bytes: ByteBuffer) { self.decoder.receive(bytes) }
  override func receiveEnd(trailers: Headers) { self.decoder.receiveEnd(trailers: trailers) }
  override func fail(_ error: ConnectError) { self.decoder.fail(error) }
  override func nextResult() -> StreamResult<ByteBuffer>? { self.decoder.next() }
  override func nextPlainMessage() -> ByteBuffer? { self.decoder.nextPlainMessage() }
  override func takeWhole() -> SingleMessage? { self.decoder.takeWhole() }
  override func awaitsEnd() -> Bool { self.decoder.awaitsEnd() }
  override func settle() { self.decoder.settle() }
  override func takeReceivedText() -> ReceivedText { self.decoder.receivedText() }
  override var bufferedByteCount: Int { self.decoder.bufferedByteCount }
}

extension ResponseDecoder {
  /// A response that this decodes.
  consuming func makeResponse() -> DecodedResponse<Self> { DecodedResponse(self) }
}
