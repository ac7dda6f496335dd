import Connect
import ConnectTesting

/// Counts what happens, and lets a test wait for it.
final class Observation: Sendable {
  private let events = Observed(0)

  var count: Int { self.events.value }

  func add() {
    self.events.update { $0 += 1 }
  }

  /// Waits until it has happened so many times.
  func wait(for count: Int) async throws {
    let reached = await self.events.wait(within: .seconds(5)) { $0 >= count ? true : nil }
    guard reached == true else { throw ExpectationFailure("expected \(count) events, and saw \(self.count)") }
  }
}

extension InMemoryTransport {
  /// Returns when all that was given to the executor, and what that gave, has run.
  func settle() async throws {
    for _ in 0..<50 {
      await withCheckedContinuation { continuation in
        self.executor.execute { continuation.resume() }
      }
    }
  }
}
