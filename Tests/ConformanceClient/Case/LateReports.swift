internal import Synchronization

/// What was found when its case had been answered already. It makes the process fail.
final class LateReports: Sendable {
  private let state = Mutex(0)

  var count: Int { self.state.withLock { $0 } }

  func add(_ report: String, of testName: String) {
    self.state.withLock { $0 += 1 }
    Log.write("\(testName): broken after its end: \(report)")
  }
}
