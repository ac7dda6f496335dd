internal import Synchronization

/// The token that all calls of a client share, for the interceptors here that show one.
final class TokenStore: Sendable {
  private struct State {
    var token = "token-0"
    var replaced: [String] = []
  }

  private let state = Mutex(State())
  private let fetch: @Sendable () async throws -> String

  /// - Parameter fetch: Asks the token endpoint.
  init(_ fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  var token: String { self.state.withLock { $0.token } }

  /// The tokens for which a new one was fetched, in order. None of them should be here twice.
  var replaced: [String] { self.state.withLock { $0.replaced } }

  var hasFetchedTwice: Bool { Set(self.replaced).count < self.replaced.count }

  /// Fetches a token in the place of `refused`.
  func refresh(_ refused: String) async throws {
    self.state.withLock { $0.replaced.append(refused) }
    let token = try await self.fetch()
    self.state.withLock { $0.token = token }
  }
}
