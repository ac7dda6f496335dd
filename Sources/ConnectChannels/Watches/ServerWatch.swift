internal import Connect
internal import NIOCore

/// A call that a channel itself makes to one of its servers: one request, then answers until it ends. It is gRPC over
/// HTTP/2.
final class ServerWatch<Answer: Sendable>: HTTPStreamHandler {
  enum Event {
    case answer(Answer)
    /// The server does not have the method.
    case unimplemented
    /// The call is over, for this reason. It should be made again.
    case ended(String)
  }

  private let method: WatchMethod<Answer>
  private var bytes = ByteBuffer()
  /// Nil once the watch is over.
  private var report: ((Event) -> Void)?
  private var stream: (any HTTPStream)?

  /// - Parameter start: Starts the stream.
  init(
    _ method: WatchMethod<Answer>,
    report: @escaping (Event) -> Void,
    start: (HTTPStreamRequest, any HTTPStreamHandler) -> (any HTTPStream)?
  ) {
    self.method = method
    self.report = report
    var frame = ByteBuffer()
    frame.writeInteger(UInt8(0))
    frame.writeInteger(UInt32(method.request.readableBytes))
    frame.writeImmutableBuffer(method.request)
    let headers: Headers = ["content-type": ["application/grpc"], "te": ["trailers"]]
    let request = HTTPStreamRequest(
      method: .post,
      target: method.path,
      headers: headers,
      body: .complete(frame)
    )
    self.stream = start(request, self)
  }

  /// Whether there was a connection to start on.
  var isUnderWay: Bool { self.stream != nil }

  func cancel() {
    self.report = nil
    self.stream.take()?.cancel()
  }

  private func end(_ event: Event) {
    self.stream = nil
    self.report.take()?(event)
  }

  /// The end as gRPC's status says it.
  private func end(status: String?, message: String?) {
    switch status {
    case "12": self.end(.unimplemented)
    case let code?: self.end(.ended("status \(code)\(message.map { ": \($0)" } ?? "")"))
    case nil: self.end(.ended("the response has no status"))
    }
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {}
  func streamDidBecomeWritable() {}

  func streamDidReceive(_ head: HTTPResponseHead) {
    switch head.status {
    case 200:
      guard let status = head.headers.first("grpc-status") else { return }
      self.abandon(status == "12" ? .unimplemented : .ended("status \(status)"))
    // A server without gRPC at this path.
    case 404: self.abandon(.unimplemented)
    default: self.abandon(.ended("HTTP status \(head.status)"))
    }
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    guard self.report != nil else { return }
    self.stream?.consume(bytes.readableBytes)
    self.bytes.writeImmutableBuffer(bytes)
    while let message = self.takeMessage() {
      guard let answer = message.isValid ? self.method.decode(message.bytes) : nil else {
        self.abandon(.ended("the answer is not what the method answers"))
        return
      }
      self.report?(.answer(answer))
    }
    self.bytes.discardReadBytes()
  }

  /// The next message; nil if it is not there as a whole yet.
  private func takeMessage() -> (bytes: [UInt8], isValid: Bool)? {
    guard let flags: UInt8 = self.bytes.getInteger(at: self.bytes.readerIndex),
      let size: UInt32 = self.bytes.getInteger(at: self.bytes.readerIndex + 1)
    else { return nil }
    guard flags == 0, size <= self.method.largestAnswer else { return ([], false) }
    guard self.bytes.readableBytes >= 5 + Int(size) else { return nil }
    self.bytes.moveReaderIndex(forwardBy: 5)
    return self.bytes.readBytes(length: Int(size)).map { ($0, true) }
  }

  func streamDidEnd(trailers: Headers) {
    self.end(status: trailers.first("grpc-status"), message: trailers.first("grpc-message"))
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.end(.ended(failure.error.message ?? "\(failure.error.code)"))
  }

  /// Ends the watch and ignores what else arrives.
  private func abandon(_ event: Event) {
    let stream = self.stream
    self.end(event)
    stream?.cancel()
  }
}
