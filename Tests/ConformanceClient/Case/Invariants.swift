internal import Synchronization

/// What the library promises of every call, as far as one case has seen a promise broken.
///
/// A broken promise fails the case: the client reports an error in place of a response. A response's `feedback` would not
/// do that, as the runner ignores it.
final class Invariants: Sendable {
  private struct State {
    var broken: [String] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let onLateReport: @Sendable (String) -> Void

  /// - Parameter onLateReport: Called with what is found when the case's outcome has been told already.
  init(onLateReport: @escaping @Sendable (String) -> Void) {
    self.onLateReport = onLateReport
  }

  /// - Parameter broken: What has happened that must never happen.
  func report(_ broken: String) {
    let isLate = self.state.withLock { state in
      if !state.isClosed { state.broken.append(broken) }
      return state.isClosed
    }
    if isLate { self.onLateReport(broken) }
  }

  /// The call is over.
  ///
  /// - Throws: ``CaseFailure`` with all that was reported, if anything was.
  func close() throws(CaseFailure) {
    let broken = self.state.withLock { state in
      state.isClosed = true
      return state.broken
    }
    if !broken.isEmpty { throw CaseFailure("broken: \(broken.joined(separator: "; "))") }
  }
}
