internal import Connect
internal import NIOCore

/// Counts the calls of a channel's endpoints for its balancer. Confined to the channel's executor.
final class CallTracker {
  let loads = EndpointLoads()
  private let executor: any CallExecutor

  init(on executor: any CallExecutor) {
    self.executor = executor
  }

  /// A response's trailers may carry a load report (ORCA, gRFC A51).
  func received(_ metadata: Headers, named name: String, from id: EndpointID) {
    guard let value = metadata.first(name), let bytes = Base64.decode(value),
      let report = LoadReport(decoding: Array(bytes.readableBytesView))
    else { return }
    self.loads.record(report, of: id, now: self.executor.now)
  }
}

/// Sits between a call's connection and its caller, and records what the balancer and statistics want to know.
final class TrackedCall: HTTPStream, HTTPStreamHandler {
  private static let loadTrailer = "endpoint-load-metrics-bin"
  private static let loadHeader = "trailer-endpoint-load-metrics-bin"

  /// Nil if the balancer need not know of calls.
  private let subchannel: Subchannel?
  /// Nil if the balancer need not know of calls.
  private let tracker: CallTracker?
  /// Nil if nobody counts the calls of a zone.
  private let counter: CallCounter?
  /// Nil once the call is over.
  private var handler: (any HTTPStreamHandler)?
  private var stream: (any HTTPStream)?
  private var isSuccess = true

  /// Starts a call, which is recorded only if somebody wants to know of it.
  static func start(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    on connection: any StreamConnection,
    of subchannel: Subchannel,
    _ tracker: CallTracker?,
    _ counter: CallCounter?
  ) -> any HTTPStream {
    if tracker == nil, counter == nil { return connection.startStream(request, handler: handler) }
    let call = TrackedCall(handler, on: subchannel, tracker, counter)
    call.stream = connection.startStream(request, handler: call)
    return call
  }

  private init(
    _ handler: any HTTPStreamHandler,
    on subchannel: Subchannel,
    _ tracker: CallTracker?,
    _ counter: CallCounter?
  ) {
    self.subchannel = tracker == nil ? nil : subchannel
    self.tracker = tracker
    self.counter = counter
    self.handler = handler
    tracker?.loads.callBegan(subchannel.id)
    counter?.begin()
  }

  /// - Parameter isSuccess: Nil if the call was given up, which says nothing of the server.
  private func end(isSuccess: Bool?) -> (any HTTPStreamHandler)? {
    guard let handler = self.handler.take() else { return nil }
    self.stream = nil
    if let tracker = self.tracker, let subchannel = self.subchannel {
      if let isSuccess { subchannel.counters.callEnded(isSuccess: isSuccess) }
      tracker.loads.callEnded(subchannel.id)
    }
    self.counter?.end(isSuccess: isSuccess ?? false)
    return handler
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) { self.stream?.write(bytes) }
  func finish(trailers: Headers) { self.stream?.finish(trailers: trailers) }
  func consume(_ count: Int) { self.stream?.consume(count) }

  func cancel() {
    let stream = self.stream
    _ = self.end(isSuccess: nil)
    stream?.cancel()
  }

  func expire() {
    let stream = self.stream
    _ = self.end(isSuccess: false)
    stream?.expire()
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) { self.handler?.streamDidStart(on: connection) }
  func streamDidBecomeWritable() { self.handler?.streamDidBecomeWritable() }
  func streamDidReceive(_ bytes: ByteBuffer) { self.handler?.streamDidReceive(bytes) }

  func streamDidReceive(_ head: HTTPResponseHead) {
    self.note(head.headers)
    if head.status != 200 { self.isSuccess = false }
    // Connect's unary responses carry their trailers as headers.
    self.takeReport(head.headers, named: Self.loadHeader)
    self.handler?.streamDidReceive(head)
  }

  func streamDidEnd(trailers: Headers) {
    self.note(trailers)
    self.takeReport(trailers, named: Self.loadTrailer)
    self.end(isSuccess: self.isSuccess)?.streamDidEnd(trailers: trailers)
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.end(isSuccess: false)?.streamDidFail(failure)
  }

  private func takeReport(_ metadata: Headers, named name: String) {
    guard let tracker = self.tracker, let subchannel = self.subchannel,
      subchannel.watches.takeReportsOfCalls
    else { return }
    tracker.received(metadata, named: name, from: subchannel.id)
  }

  private func note(_ headers: Headers) {
    if let status = headers.first(lowercased: "grpc-status"), status != "0" { self.isSuccess = false }
  }
}
