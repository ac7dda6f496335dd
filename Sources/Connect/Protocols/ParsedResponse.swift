internal import NIOCore

/// A unary response that a ``ResponseParser`` reads. It counts as a whole, and its body is kept where the protocol finds an
/// error.
final class ParsedResponse: ResponseReader {
  /// Decodes as the protocol says.
  private let inner: ResponseReader
  private let method: MethodInfo
  private let acceptedEncodings: AcceptedEncodings
  private let maximumMessageSize: Int
  private var body: BodyBuffer
  private var headers = Headers()
  private var state = State.open

  private enum State {
    case open
    /// The body is complete.
    case whole
    case failed(ConnectError?)
  }

  /// - Parameters:
  ///   - maximumMessageSize: In bytes, of the body of a response in which the protocol finds an error.
  ///   - maximumFraming: How many bytes of a body may be no message.
  init(
    _ inner: ResponseReader,
    of method: MethodInfo,
    maximumMessageSize: Int,
    maximumFraming: Int,
    acceptedEncodings: AcceptedEncodings
  ) {
    self.inner = inner
    self.method = method
    self.acceptedEncodings = acceptedEncodings
    self.maximumMessageSize = maximumMessageSize
    let (limit, isOver) = maximumMessageSize.addingReportingOverflow(maximumFraming)
    self.body = BodyBuffer(limit: isOver ? .max : limit)
  }

  override func decode(_ head: HTTPResponseHead) {
    self.headers = head.headers
    self.inner.receive(head)
  }

  override func decode(_ bytes: ByteBuffer) {
    guard case .open = self.state else { return }
    guard self.body.append(bytes) else {
      let size = self.body.bytes.readableBytes + bytes.readableBytes
      _ = self.body.take()
      self.state = .failed(
        MessageSizeErrors.received("at least \(size) bytes", limit: self.maximumMessageSize)
      )
      return
    }
    self.inner.receive(bytes)
  }

  override func receiveEnd(trailers: Headers) {
    guard case .open = self.state else { return }
    self.inner.receiveEnd(trailers: trailers)
    self.state = .whole
  }

  override func fail(_ error: ConnectError) {
    guard case .open = self.state else { return }
    self.inner.fail(error)
    self.state = .failed(nil)
  }

  override func awaitsEnd() -> Bool {
    if case .open = self.state { true } else { false }
  }

  override func takeWhole() -> SingleMessage? {
    switch self.state {
    case .open: nil
    case .failed(let error?):
      SingleMessage(result: .failure(error), headers: self.headers, trailers: Headers())
    case .whole, .failed(nil): self.inner.takeSingle(from: nil, of: self.method)
    }
  }

  override func settle() { self.inner.settle() }
  override func takeReceivedText() -> ReceivedText { self.inner.takeReceivedText() }
  override var bufferedByteCount: Int { self.body.bytes.readableBytes + self.inner.bufferedByteCount }

  override func takeWholeBody() -> ByteBuffer? {
    guard case .whole = self.state else { return nil }
    let bytes = self.body.take()
    // What cannot be decompressed is no body to parse: the error of the protocol counts.
    let encoding = try? self.acceptedEncodings.encoding(of: self.headers, header: "content-encoding")
    return try? encoding?.decompress(bytes, maximumSize: self.maximumMessageSize)
  }
}
