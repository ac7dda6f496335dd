internal import Connect
internal import Synchronization

/// Calls by several tasks, each one after the other, all of which should succeed.
final class MeshLoad: Sendable {
  private struct State {
    var failures: [MeshClient.Answer] = []
    var count = 0
    var isStopped = false
  }

  private final class Tally: Sendable {
    let state = Mutex(State())

    func add(_ answer: MeshClient.Answer) {
      self.state.withLock { state in
        state.count += 1
        if answer.code != .ok { state.failures.append(answer) }
      }
    }
  }

  private let tally: Tally
  private let tasks: [Task<Void, Never>]

  init(_ client: MeshClient, workers: Int = 4) {
    let tally = Tally()
    self.tally = tally
    self.tasks = (0..<workers).map { _ in
      Task {
        while !tally.state.withLock(\.isStopped) { tally.add(await client.call()) }
      }
    }
  }

  /// Waits for the ends of so many more calls.
  func wait(for more: Int) async throws {
    let goal = self.tally.state.withLock(\.count) + more
    try await eventually("\(more) calls more") { self.tally.state.withLock(\.count) >= goal }
  }

  /// Ends the calls.
  ///
  /// - Returns: Those that failed.
  func stop() async -> [MeshClient.Answer] {
    self.tally.state.withLock { $0.isStopped = true }
    for task in self.tasks { await task.value }
    return self.tally.state.withLock(\.failures)
  }
}
