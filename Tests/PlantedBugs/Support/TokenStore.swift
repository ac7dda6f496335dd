internal import Synchronization

/// The token that all calls of a client share, for the interceptors here that show one.
final class TokenStore: Sendable {
  private struct State {
    var token = "token-0"
    var running = 0
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
    self.state.withLock { state in
      state.running += 1
      state.mostRunning = max(state.mostRunning, state.running)
    }
    defer { self.state.withLock { $0.running -= 1 } }
    let token = try await self.fetch()
    self.state.withLock { $0.token = token }
  }
}
