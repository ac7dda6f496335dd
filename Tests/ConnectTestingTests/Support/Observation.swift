import Connect
import ConnectTesting

/// Counts events, and lets a test wait for them.
final class Observation: Sendable {
  private let events = Observed(0)

  var count: Int { self.events.value }

  func add() {
    self.events.update { $0 += 1 }
  }

  /// Waits until there were `count` events.
  func wait(for count: Int) async throws {
    let reached = await self.events.wait(within: .seconds(5)) { $0 >= count ? true : nil }
    guard reached == true else { throw ExpectationFailure("expected \(count) events, and saw \(self.count)") }
  }
}

extension InMemoryTransport {
  /// Returns when the executor has run all jobs, including the jobs that those jobs added.
  func settle() async throws {
    for _ in 0..<50 {
      await withCheckedContinuation { continuation in
        self.executor.execute { continuation.resume() }
      }
    }
  }
}
