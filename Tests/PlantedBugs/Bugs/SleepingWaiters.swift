internal import Connect
internal import ConnectTesting
internal import Synchronization

/// A token that is fetched once for all calls that need it at the same time.
final class SharedToken: Sendable {
  typealias Use = @Sendable (Result<String, any Error>) -> Void

  private struct State {
    var isFetching = false
    var waiters: [Use] = []
  }

  private let state = Mutex(State())
  private let fetch: @Sendable () async throws -> String

  init(fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  func get(_ use: @escaping Use) {
    let isFirst = self.state.withLock { state in
      defer { state.isFetching = true }
      state.waiters.append(use)
      return !state.isFetching
    }
    guard isFirst else { return }
    Task {
      do {
        let token = try await self.fetch()
        for waiter in self.end() { waiter(.success(token)) }
      } catch {
        // The bug: the others wait on.
        let own = self.state.withLock { state in
          state.isFetching = false
          return state.waiters.removeFirst()
        }
        own(.failure(error))
      }
    }
  }

  private func end() -> [Use] {
    self.state.withLock { state in
      defer { state = State() }
      return state.waiters
    }
  }
}

/// Shows the token that the calls share.
final class SleepingWaiters: Interceptor {
  private let token: SharedToken

  init(token: SharedToken) {
    self.token = token
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { [token] request, proceed in
      token.get { result in
        switch result {
        case .success(let token):
          var request = request
          request.headers["authorization"] = ["Bearer \(token)"]
          proceed(.success(request))
        case .failure(let error):
          proceed(.failure(ConnectError(error, code: .unauthenticated)))
        }
      }
    })
  }
}

extension ExplorationCase {
  static let sleepingWaiters = ExplorationCase(
    "SleepingWaiters",
    source: "arthurfiorette/axios-cache-interceptor#1195",
    breaking: ["each call ends"],
    InterceptorExplorer { world in
      let token = SharedToken {
        try await world.step("token endpoint", canFail: true)
        return world.token()
      }
      return Subject { _ in SleepingWaiters(token: token) }
    }
    .calls(2)
    .allowing(.failure)
  )
}
