internal import Connect
internal import NIOCore

/// Counts the calls of an endpoint for its balancer and for statistics. One for all of its calls that are counted alike.
/// Confined to the channel's executor.
final class CallTracker: StreamTally {
  private static let loadTrailer = "endpoint-load-metrics-bin"
  private static let loadHeader = "trailer-endpoint-load-metrics-bin"

  /// Nil if the balancer need not know of calls.
  private let calls: EndpointCalls?
  /// Nil if nobody counts the calls of a zone.
  private let counter: CallCounter?
  /// Those of the calls, by which they are told apart.
  let additions: PickAdditions?

  init(_ calls: EndpointCalls?, _ counter: CallCounter?, _ additions: PickAdditions?) {
    self.calls = calls
    self.counter = counter
    self.additions = additions
  }

  /// Starts a call that is counted.
  func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    on connection: any StreamConnection
  ) -> any HTTPStream {
    guard let tallied = handler as? TalliedHandler else {
      return TrackedCall(handler, self).start(request, on: connection)
    }
    tallied.begin(self)
    return connection.startStream(request, handler: handler)
  }

  // MARK: StreamTally

  func streamBegins() {
    self.calls?.begin()
    self.counter?.begin()
  }

  func streamDidEnd(_ head: HTTPResponseHead?, trailers: Headers) {
    let isSuccess = (head?.isSuccess ?? true) && !trailers.areOfFailure
    if let calls = self.calls {
      if calls.takesReports {
        // Connect's unary responses carry their trailers as headers.
        if let head { calls.takeReport(of: head.headers, named: Self.loadHeader) }
        calls.takeReport(of: trailers, named: Self.loadTrailer)
      }
      calls.end(isSuccess: isSuccess)
    }
    self.counter?.end(isSuccess: isSuccess)
  }

  func streamDidEnd(isFailure: Bool) {
    // A call that was given up says nothing of the server.
    self.calls?.end(isSuccess: isFailure ? false : nil)
    self.counter?.end(isSuccess: false)
  }
}

/// Sits between a call's connection and a handler that does not tell the tracker how its stream ends.
final class TrackedCall: HTTPStream, HTTPStreamHandler {
  /// Nil once the call is over.
  private var tracker: CallTracker?
  private let handler: any HTTPStreamHandler
  private var stream: (any HTTPStream)?
  private var head: HTTPResponseHead?

  fileprivate init(_ handler: any HTTPStreamHandler, _ tracker: CallTracker) {
    self.handler = handler
    self.tracker = tracker
  }

  fileprivate func start(_ request: HTTPStreamRequest, on connection: any StreamConnection) -> any HTTPStream
  {
    self.tracker?.streamBegins()
    self.stream = connection.startStream(request, handler: self)
    return self
  }

  /// Nil if the call is over.
  private func end() -> CallTracker? {
    self.stream = nil
    return self.tracker.take()
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) { self.stream?.write(bytes) }
  func finish(trailers: Headers) { self.stream?.finish(trailers: trailers) }
  func consume(_ count: Int) { self.stream?.consume(count) }

  func cancel() {
    let stream = self.stream
    self.end()?.streamDidEnd(isFailure: false)
    stream?.cancel()
  }

  func expire() {
    let stream = self.stream
    self.end()?.streamDidEnd(isFailure: true)
    stream?.expire()
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    if self.tracker != nil { self.handler.streamDidStart(on: connection) }
  }

  func streamDidBecomeWritable() {
    if self.tracker != nil { self.handler.streamDidBecomeWritable() }
  }

  func streamDidReceive(_ head: HTTPResponseHead) {
    guard self.tracker != nil else { return }
    self.head = head
    self.handler.streamDidReceive(head)
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    if self.tracker != nil { self.handler.streamDidReceive(bytes) }
  }

  func streamDidEnd(trailers: Headers) {
    guard let tracker = self.end() else { return }
    tracker.streamDidEnd(self.head, trailers: trailers)
    self.handler.streamDidEnd(trailers: trailers)
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    guard let tracker = self.end() else { return }
    tracker.streamDidEnd(isFailure: true)
    self.handler.streamDidFail(failure)
  }
}

extension HTTPResponseHead {
  fileprivate var isSuccess: Bool { self.status == 200 && !self.headers.areOfFailure }
}

extension Headers {
  /// Whether they have the status of a call that has failed.
  fileprivate var areOfFailure: Bool { self.first(lowercased: "grpc-status").map { $0 != "0" } ?? false }
}
