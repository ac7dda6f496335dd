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
    if let error = ConnectResponseRules.contentTypeError(
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
        with: ConnectResponseRules.responseError(
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
