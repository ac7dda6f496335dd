internal import Synchronization

/// The token that all calls of a client share, for the interceptors here that show one.
final class TokenStore: Sendable {
  private struct State {
    var token = "token-0"
    /// The numbers of the fetches that run.
    var running: Set<Int> = []
    var count = 0
    var mostRunning = 0
  }

  private let state = Mutex(State())
  private let fetch: @Sendable () async throws -> String

  /// - Parameter fetch: Asks the token endpoint.
  init(_ fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  var token: String { self.state.withLock { $0.token } }

  /// How many fetches ran at once, at most.
  var mostRunning: Int { self.state.withLock { $0.mostRunning } }

  /// Fetches a token.
  func refresh() async throws {
    let number = self.state.withLock { state in
      state.count += 1
      state.running.insert(state.count)
      state.mostRunning = max(state.mostRunning, state.running.count)
      return state.count
    }
    defer { self.end(number) }
    let token = try await withTaskCancellationHandler {
      try await self.fetch()
    } onCancel: {
      // Whoever gives up a fetch may begin another one before this task has run on.
      self.end(number)
    }
    self.state.withLock { $0.token = token }
  }

  private func end(_ number: Int) {
    self.state.withLock { _ = $0.running.remove(number) }
  }
}
