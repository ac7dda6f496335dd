internal import NIOCore

/// Decodes the response of a unary call, <https://connectrpc.com/docs/protocol#unary-response>.
///
/// With status 200 the body is the message. With another status it is an error in JSON, or comes from a proxy; then only
/// the status counts. Trailers are headers that begin with `trailer-`. HTTP trailers are ignored.
struct ConnectUnaryDecoder: ResponseDecoder {
  private static let trailerPrefix = "trailer-"

  private let contentType: String
  private let maximumMessageSize: Int
  private let acceptedEncodings: AcceptedEncodings
  /// The encoding of a response with status 200.
  private var encoding: ResponseEncoding?

  private var head: HTTPResponseHead?
  /// The head's fields, sorted into metadata and trailers.
  private var headers = Headers()
  private var trailers = Headers()
  private var text = ReceivedText()

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

  init(
    contentType: String,
    maximumMessageSize: Int,
    acceptedEncodings: AcceptedEncodings = .none,
    buffers: BodyBuffers? = nil
  ) {
    self.contentType = contentType
    self.acceptedEncodings = acceptedEncodings
    self.maximumMessageSize = maximumMessageSize
    self.body = BodyBuffer(limit: maximumMessageSize, buffers: buffers)
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
      self.body = BodyBuffer(
        limit: ResponseEncoding.maximumCompressedSize(of: self.maximumMessageSize),
        buffers: self.body.buffers
      )
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
      self.fail(
        with: ConnectError(code: .internalError, message: "the HTTP client ended the response without a head")
      )
      return
    }
    guard head.status == 200 else {
      self.fail(
        with: ConnectErrorJSON.responseError(
          head,
          body: self.body.bytes,
          acceptedEncodings: self.acceptedEncodings,
          &self.text
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
    self.fail(with: ResponseRules.brokenOff(error, self.head))
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

  // Mutating, since a nonmutating access would copy the large struct.
  mutating func awaitsEnd() -> Bool {
    if case nil = self.outcome { true } else { false }
  }

  mutating func takeWhole() -> SingleMessage? {
    guard case .headers = self.progress else { return nil }
    let result: Result<ResultPart, ConnectError>
    switch self.outcome {
    case .success(let message): result = .success(.bytes(message))
    case .failure(let error): result = .failure(error)
    case .end, nil: return nil
    }
    self.progress = .done
    self.outcome = .end
    return SingleMessage(result: result, headers: self.headers, trailers: self.trailers)
  }

  /// There is only one message, which ``next()`` gives.
  mutating func nextPlainMessage() -> ByteBuffer? { nil }

  mutating func settle() {}

  mutating func receivedText() -> ReceivedText { self.text }

  private mutating func fail(with error: ConnectError) {
    _ = self.body.take()
    self.outcome = .failure(
      ResponseRules.complete(error, from: self.head, headers: self.headers, trailers: self.trailers)
    )
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
    MessageSizeErrors.received("\(size) bytes", limit: self.maximumMessageSize)
  }
}

/// Decodes the response of a stream, <https://connectrpc.com/docs/protocol#streaming-response>: enveloped
/// messages, and an end-of-stream message with the outcome.
///
/// The end comes out when the body has ended, so that bytes after the end-of-stream message are noticed. They are an
/// error, `internal`, as in connect-go. A status other than 200 comes from an intermediary. An error in JSON is
/// honoured; without one, the status counts.
struct ConnectStreamDecoder: ResponseDecoder {
  private let contentType: String
  private let maximumMetadataSize: Int
  private let acceptedEncodings: AcceptedEncodings

  private var response: EnvelopedResponse
  private var endStream: ConnectEndStream?
  /// The body of a response with another status than 200.
  private var errorBody = BodyBuffer(limit: ConnectErrorJSON.maximumSize)
  private var text = ReceivedText()

  init(
    contentType: String,
    maximumMessageSize: Int,
    maximumMetadataSize: Int = HeaderListSize.defaultLimit,
    acceptedEncodings: AcceptedEncodings = .none,
    buffers: BodyBuffers? = nil
  ) {
    self.contentType = contentType
    self.maximumMetadataSize = maximumMetadataSize
    self.acceptedEncodings = acceptedEncodings
    self.response = EnvelopedResponse(
      encodingHeader: "connect-content-encoding",
      endFlag: ConnectEndStream.flag,
      maximumMessageSize: maximumMessageSize,
      maximumEndSize: ConnectErrorJSON.maximumSize,
      acceptedEncodings: acceptedEncodings,
      buffers: buffers
    )
  }

  var bufferedByteCount: Int { self.response.bufferedByteCount + self.errorBody.bytes.readableBytes }

  mutating func receive(_ head: HTTPResponseHead) {
    let error = ConnectProtocol.contentTypeError(
      of: head.headers,
      expected: self.contentType,
      streamType: .bidirectionalStream
    )
    self.response.receive(head, contentTypeError: error)
  }

  mutating func receive(_ bytes: ByteBuffer) {
    guard let head = self.response.openHead else { return }
    if head.status == 200 {
      self.response.receive(bytes)
    } else if !self.errorBody.append(bytes) {
      self.response.reject(with: ResponseRules.statusError(head, body: self.errorBody.take()))
    }
  }

  mutating func receiveEnd(trailers: Headers) { self.response.receiveEnd(trailers: trailers) }

  mutating func fail(_ error: ConnectError) { self.response.fail(error) }

  mutating func next() -> StreamResult<ByteBuffer>? {
    if self.response.isFinished { return nil }
    do throws(ConnectError) {
      switch try self.response.next() {
      case .result(let result): return result
      case .end(let message):
        let endStream = try ConnectEndStream(message, maximumMetadataSize: self.maximumMetadataSize)
        self.text = endStream.text
        self.endStream = endStream
      case nil: break
      }
      return try self.completeStream()
    } catch {
      return self.complete(error)
    }
  }

  mutating func nextPlainMessage() -> ByteBuffer? { self.response.nextPlainMessage() }

  mutating func settle() { self.response.settle() }

  mutating func receivedText() -> ReceivedText { self.text }

  // MARK: Ends

  private mutating func complete(
    _ error: ConnectError,
    trailers: Headers = Headers()
  ) -> StreamResult<ByteBuffer> {
    self.response.discard()
    _ = self.errorBody.take()
    self.response.finish()
    let error = ResponseRules.complete(error, from: self.response.head, trailers: trailers)
    return .complete(code: error.code, error: error, trailers: trailers)
  }

  private mutating func completeStream() throws(ConnectError) -> StreamResult<ByteBuffer>? {
    if self.endStream != nil, let error = self.excessError { throw error }
    switch (self.response.input, self.endStream) {
    case (.open, _):
      return nil
    case (.ended, nil):
      throw self.missingEndError()
    case (.failed(let error), nil):
      throw ResponseRules.brokenOff(error, self.response.head)
    case (_, let endStream?):
      if let error = endStream.error { return self.complete(error, trailers: endStream.trailers) }
      self.response.finish()
      return .complete(code: .ok, error: nil, trailers: endStream.trailers)
    }
  }

  /// Bytes of the body that are no whole message, or are behind the end-of-stream message.
  private var excessError: ConnectError? { self.response.excessError(behind: "end-of-stream message") }

  /// The error of a body that ended without an end-of-stream message.
  private mutating func missingEndError() -> ConnectError {
    guard let head = self.response.head else {
      return ConnectError(code: .internalError, message: "the HTTP client ended the response without a head")
    }
    guard head.status == 200 else {
      return ConnectErrorJSON.responseError(
        head,
        body: self.errorBody.bytes,
        acceptedEncodings: self.acceptedEncodings,
        &self.text
      )
    }
    return self.excessError
      ?? ConnectError(
        code: .internalError,
        message: "response ended without an end-of-stream message; the server or a proxy broke off"
      )
  }
}
