internal import Synchronization

/// The stopwatch of one run of an async interceptor, which an interceptor may stop and start from several tasks.
final class AsyncStopwatch: Sendable {
  private let index: Int
  private let call: ExplainedCall
  private let visit: Mutex<ExplainedCall.Visit?>

  /// A running stopwatch, in the direction of the request.
  init(_ index: Int, _ call: ExplainedCall) {
    self.index = index
    self.call = call
    self.visit = Mutex(call.begin(index, .request))
  }

  /// Runs `next` with the stopwatch stopped; it goes on in the direction of the response.
  func pausing<Value>(_ next: () async throws -> Value) async rethrows -> Value {
    self.stop()
    defer { self.replace(with: self.call.begin(self.index, .response)) }
    return try await next()
  }

  func stop() {
    self.replace(with: nil)
  }

  private func replace(with next: ExplainedCall.Visit?) {
    let earlier = self.visit.withLock { visit in
      defer { visit = next }
      return visit
    }
    if let earlier { self.call.end(earlier) }
  }
}
