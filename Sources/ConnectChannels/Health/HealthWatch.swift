internal import Connect
internal import NIOCore

/// One call of `grpc.health.v1.Health/Watch` (gRFC A17).
final class HealthWatch: HTTPStreamHandler {
  enum Event {
    case status(HealthStatus)
    /// The server has no health service: it counts as healthy.
    case unimplemented
    /// The call is over, for this reason. It should be made again.
    case ended(String)
  }

  private var bytes = ByteBuffer()
  /// Nil once the watch is over.
  private var report: ((Event) -> Void)?
  private var stream: (any HTTPStream)?

  /// - Parameter start: Starts the stream.
  init(
    service: String,
    report: @escaping (Event) -> Void,
    start: (HTTPStreamRequest, any HTTPStreamHandler) -> (any HTTPStream)?
  ) {
    self.report = report
    let headers: Headers = ["content-type": ["application/grpc"], "te": ["trailers"]]
    let request = HTTPStreamRequest(
      method: .post,
      target: HealthMessages.path,
      headers: headers,
      body: .complete(HealthMessages.request(service: service))
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
    do throws(HealthMessages.InvalidResponse) {
      while let status = try HealthMessages.takeResponse(from: &self.bytes) { self.report?(.status(status)) }
      self.bytes.discardReadBytes()
    } catch {
      self.abandon(.ended("the response is no health status"))
    }
  }

  func streamDidEnd(trailers: Headers) {
    self.end(status: trailers.first("grpc-status"), message: trailers.first("grpc-message"))
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.end(.ended(failure.error.message ?? "\(failure.error.code)"))
  }

  /// What else comes is of no interest.
  private func abandon(_ event: Event) {
    let stream = self.stream
    self.end(event)
    stream?.cancel()
  }
}
