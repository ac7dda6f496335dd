internal import NIOCore

/// Decodes the response of a unary call, <https://connectrpc.com/docs/protocol#unary-response>.
///
/// With status 200 the body is the message; with any other it is an error in JSON, or something that a proxy
/// said, of which only the status counts. Trailers are headers that begin with `trailer-`. HTTP trailers are
/// ignored.
struct ConnectUnaryDecoder: ResponseDecoder {
  private static let trailerPrefix = "trailer-"

  private let contentType: String
  private let maximumMessageSize: Int
  private let acceptedEncodings: AcceptedEncodings
  /// Of a response with status 200.
  private var encoding: ResponseEncoding?

  private var head: HTTPResponseHead?
  /// The head's fields, sorted into metadata and trailers.
  private var headers = Headers()
  private var trailers = Headers()

  private var body: BodyBuffer
  private var progress = Progress.headers
  private var outcome: Outcome?

  /// What comes out next.
  private enum Progress {
    case headers, message, complete, done
  }

  private enum Outcome {
    case success(ByteBuffer)
    case end
    case failure(ConnectError)
  }

  init(contentType: String, maximumMessageSize: Int, acceptedEncodings: AcceptedEncodings = .none) {
    self.contentType = contentType
    self.acceptedEncodings = acceptedEncodings
    self.maximumMessageSize = maximumMessageSize
    self.body = BodyBuffer(limit: maximumMessageSize)
  }

  var bufferedByteCount: Int { self.body.bytes.readableBytes }

  mutating func receive(_ head: HTTPResponseHead) {
    guard self.head == nil, self.outcome == nil else { return }
    self.head = head
    self.sortHeaders(head.headers)
    guard head.status == 200 else {
      self.body = BodyBuffer(limit: ConnectErrorJSON.maximumSize)
      return
    }
    do throws(ConnectError) {
      try self.accept(head.headers)
    } catch {
      self.fail(with: error)
    }
  }

  private mutating func accept(_ headers: Headers) throws(ConnectError) {
    if let error = ConnectProtocol.contentTypeError(
      of: headers,
      expected: self.contentType,
      streamType: .unary
    ) {
      throw error
    }
    let encoding = try self.acceptedEncodings.encoding(of: headers, header: "content-encoding")
    self.encoding = encoding
    if encoding.pool != nil {
      self.body = BodyBuffer(limit: ResponseEncoding.maximumCompressedSize(of: self.maximumMessageSize))
    }
    if let length = headers.first(lowercased: "content-length").flatMap(Int.init), !self.body.expect(length) {
      throw self.sizeError("\(length)")
    }
  }

  mutating func receive(_ bytes: ByteBuffer) {
    guard let head = self.head, self.outcome == nil else { return }
    if self.body.append(bytes) { return }
    self.fail(
      with: head.status == 200
        ? self.sizeError("at least \(self.body.bytes.readableBytes + bytes.readableBytes)")
        : ResponseRules.statusError(head, body: self.body.bytes)
    )
  }

  mutating func receiveEnd(trailers: Headers) {
    guard self.outcome == nil else { return }
    guard let head = self.head else {
      self.fail(with: ConnectError(code: .internalError, message: "response ended without a head"))
      return
    }
    guard head.status == 200 else {
      self.fail(
        with: ConnectErrorJSON.responseError(
          head,
          body: self.body.bytes,
          acceptedEncodings: self.acceptedEncodings
        )
      )
      return
    }
    do throws(ConnectError) {
      let body = self.body.take()
      let message = try self.encoding?.decompress(body, maximumSize: self.maximumMessageSize) ?? body
      self.outcome = .success(message)
    } catch {
      self.fail(with: error)
    }
  }

  mutating func fail(_ error: ConnectError) {
    guard self.outcome == nil else { return }
    if let head = self.head, head.status != 200 {
      self.fail(with: ResponseRules.brokenOff(error, head))
    } else {
      self.fail(with: error)
    }
  }

  mutating func next() -> StreamResult<ByteBuffer>? {
    switch (self.progress, self.outcome) {
    case (.headers, nil) where self.head == nil:
      return nil
    case (.headers, _) where self.head != nil:
      self.progress = .message
      return .headers(self.headers)
    case (.headers, .failure(let error)), (.message, .failure(let error)), (.complete, .failure(let error)):
      self.progress = .done
      return .complete(code: error.code, error: error, trailers: self.trailers)
    case (.headers, .success(let message)), (.message, .success(let message)):
      self.progress = .complete
      self.outcome = .end
      return .message(message)
    case (.complete, .end):
      self.progress = .done
      return .complete(code: .ok, error: nil, trailers: self.trailers)
    case (.headers, nil), (.message, nil), (.complete, _), (.done, _), (_, .end):
      return nil
    }
  }

  /// A whole response has one message, and it comes out with the rest.
  mutating func nextPlainMessage() -> ByteBuffer? { nil }

  mutating func settle() {}

  private mutating func fail(with error: ConnectError) {
    _ = self.body.take()
    self.outcome = .failure(error.inResponse(self.head, headers: self.headers, trailers: self.trailers))
  }

  private mutating func sortHeaders(_ fields: Headers) {
    let prefix = Self.trailerPrefix
    guard fields.contains(where: { $0.name.utf8.first == UInt8(ascii: "t") && $0.name.hasPrefix(prefix) })
    else {
      self.headers = fields
      return
    }
    for field in fields {
      let name = field.name.utf8.dropFirst(prefix.utf8.count)
      if field.name.hasPrefix(prefix), !name.isEmpty {
        self.trailers.add(name: String(Substring(name)), value: field.value)
      } else {
        self.headers.add(name: field.name, value: field.value)
      }
    }
  }

  private func sizeError(_ size: String) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "received message of \(size) bytes,"
        + " which is over the limit of \(self.maximumMessageSize) bytes"
    )
  }
}

/// Decodes the response of a stream, <https://connectrpc.com/docs/protocol#streaming-response>: enveloped
/// messages, and an end-of-stream message that says how it went.
///
/// The end comes out when the body has ended, so that the connection is left in order and bytes behind the
/// end-of-stream message are noticed: they are an error, `internal`, as in connect-go. A status other than 200
/// comes from something between client and server; an error in JSON is honoured, else the status counts.
struct ConnectStreamDecoder: ResponseDecoder {
  private let contentType: String
  private let maximumMessageSize: Int
  private let maximumMetadataSize: Int
  private let acceptedEncodings: AcceptedEncodings
  private var encoding = ResponseEncoding(pool: nil, header: "connect-content-encoding")

  private var head: HTTPResponseHead?
  private var isHeadDelivered = false

  private var envelopes: EnvelopeDecoder
  private var endStream: ConnectEndStream?
  /// The body of a response with another status than 200.
  private var errorBody = BodyBuffer(limit: ConnectErrorJSON.maximumSize)

  private var input = Input.open
  private var output = Output.open

  private enum Input {
    case open
    case ended
    case failed(ConnectError)
  }

  private enum Output {
    case open
    case failing(ConnectError)
    case done
  }

  init(
    contentType: String,
    maximumMessageSize: Int,
    maximumMetadataSize: Int = HeaderListSize.defaultLimit,
    acceptedEncodings: AcceptedEncodings = .none
  ) {
    self.contentType = contentType
    self.maximumMessageSize = maximumMessageSize
    self.maximumMetadataSize = maximumMetadataSize
    self.acceptedEncodings = acceptedEncodings
    self.envelopes = EnvelopeDecoder(
      maximumMessageSize: maximumMessageSize,
      endFlag: ConnectEndStream.flag,
      maximumEndSize: ConnectErrorJSON.maximumSize
    )
  }

  var bufferedByteCount: Int { self.envelopes.bufferedByteCount + self.errorBody.bytes.readableBytes }

  mutating func receive(_ head: HTTPResponseHead) {
    guard case .open = self.output, case .open = self.input, self.head == nil else { return }
    self.head = head
    guard head.status == 200 else { return }
    if let error = ConnectProtocol.contentTypeError(
      of: head.headers,
      expected: self.contentType,
      streamType: .bidirectionalStream
    ) {
      self.fail(with: error)
      return
    }
    do throws(ConnectError) {
      self.encoding = try self.acceptedEncodings.encoding(
        of: head.headers,
        header: "connect-content-encoding"
      )
    } catch {
      self.fail(with: error)
    }
  }

  mutating func receive(_ bytes: ByteBuffer) {
    guard case .open = self.output, case .open = self.input, let head = self.head else { return }
    if head.status == 200 {
      self.envelopes.receive(bytes)
    } else if !self.errorBody.append(bytes) {
      self.fail(with: ResponseRules.statusError(head, body: self.errorBody.bytes))
    }
  }

  mutating func receiveEnd(trailers: Headers) {
    guard case .open = self.input else { return }
    self.input = .ended
  }

  mutating func fail(_ error: ConnectError) {
    guard case .open = self.input else { return }
    self.input = .failed(error)
  }

  mutating func next() -> StreamResult<ByteBuffer>? {
    if case .done = self.output { return nil }
    if let head = self.head, !self.isHeadDelivered {
      self.isHeadDelivered = true
      return .headers(head.headers)
    }
    if case .failing(let error) = self.output { return self.complete(error) }
    guard let head = self.head else { return self.completeWithoutHead() }
    guard head.status == 200 else { return self.completeErrorStatus(head) }
    do throws(ConnectError) {
      if self.endStream == nil, let message = try self.nextMessage() { return .message(message) }
      return try self.completeStream()
    } catch {
      return self.complete(error)
    }
  }

  mutating func nextPlainMessage() -> ByteBuffer? {
    guard self.isHeadDelivered, self.endStream == nil, case .open = self.output else { return nil }
    return self.envelopes.nextPlainMessage()
  }

  mutating func settle() { self.envelopes.settle() }

  // MARK: Messages

  /// The next message; nil if there is none yet, or if the end of the stream was reached.
  private mutating func nextMessage() throws(ConnectError) -> ByteBuffer? {
    guard let envelope = try self.envelopes.next() else { return nil }
    guard envelope.flags & ~(Envelope.compressedFlag | ConnectEndStream.flag) == 0 else {
      throw ConnectError(
        code: .internalError,
        message: "received envelope with unknown flags \(envelope.flags)"
      )
    }
    guard envelope.flags & ConnectEndStream.flag != 0 else {
      return try self.encoding.message(of: envelope, maximumSize: self.maximumMessageSize)
    }
    let end = try self.encoding.message(of: envelope, maximumSize: ConnectErrorJSON.maximumSize)
    self.endStream = try ConnectEndStream(end, maximumMetadataSize: self.maximumMetadataSize)
    return nil
  }

  // MARK: Ends

  private mutating func fail(with error: ConnectError) {
    self.envelopes.discard()
    _ = self.errorBody.take()
    self.output = .failing(error)
  }

  private mutating func complete(
    _ error: ConnectError,
    trailers: Headers = Headers()
  ) -> StreamResult<ByteBuffer> {
    self.envelopes.discard()
    _ = self.errorBody.take()
    self.output = .done
    let error = error.inResponse(self.head, trailers: trailers)
    return .complete(code: error.code, error: error, trailers: trailers)
  }

  private mutating func completeStream() throws(ConnectError) -> StreamResult<ByteBuffer>? {
    guard let endStream = self.endStream else {
      switch self.input {
      case .open:
        return nil
      case .failed(let error):
        throw error
      case .ended:
        throw ConnectError(
          code: .internalError,
          message: self.envelopes.bufferedByteCount > 0
            ? "response ended in the middle of a message"
            : "response ended without an end-of-stream message"
        )
      }
    }
    let excess = self.envelopes.bufferedByteCount
    guard excess == 0 else {
      throw ConnectError(
        code: .internalError,
        message: "received \(excess) bytes behind the end-of-stream message"
      )
    }
    if case .open = self.input { return nil }
    if let error = endStream.error { return self.complete(error, trailers: endStream.trailers) }
    self.output = .done
    return .complete(code: .ok, error: nil, trailers: endStream.trailers)
  }

  private mutating func completeWithoutHead() -> StreamResult<ByteBuffer>? {
    switch self.input {
    case .open:
      return nil
    case .ended:
      return self.complete(ConnectError(code: .internalError, message: "response ended without a head"))
    case .failed(let error):
      return self.complete(error)
    }
  }

  private mutating func completeErrorStatus(_ head: HTTPResponseHead) -> StreamResult<ByteBuffer>? {
    switch self.input {
    case .open:
      return nil
    case .ended:
      return self.complete(
        ConnectErrorJSON.responseError(
          head,
          body: self.errorBody.bytes,
          acceptedEncodings: self.acceptedEncodings
        )
      )
    case .failed(let error):
      return self.complete(ResponseRules.brokenOff(error, head))
    }
  }
}
