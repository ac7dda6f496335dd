internal import Connect
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

/// Shows the token of the user whom a header names. Tokens are kept by user and host.
struct UserTokens: AsyncUnaryByteInterceptor {
  final class Cache: Sendable {
    struct Key: Hashable {
      let user: String
      let host: String
    }

    private let tokens = Mutex<[Key: String]>([:])

    subscript(key: Key) -> String? {
      get { self.tokens.withLock { $0[key] } }
      set { self.tokens.withLock { $0[key] = newValue } }
    }
  }

  let cache: Cache
  let userHeader: String
  let fetch: @Sendable (_ user: String) async throws -> String

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    let user = request.headers.first(self.userHeader) ?? "nobody"
    let token = try await self.token(Cache.Key(user: user, host: request.url.host))
    var request = request
    request.headers["authorization"] = ["Bearer \(token)"]
    return try await next(request)
  }

  private func token(_ key: Cache.Key) async throws -> String {
    if let token = self.cache[key] { return token }
    let token = try await self.fetch(key.user)
    self.cache[key] = token
    return token
  }
}

extension ExplorationCase {
  static let userTokens = ExplorationCase(
    "UserTokens",
    InterceptorExplorer { world in
      let cache = UserTokens.Cache()
      return Subject { _ in
        UserTokens(cache: cache, userHeader: "x-user") { user in
          try await world.step("token endpoint", canFail: true)
          return "token-of-\(user)"
        }
      }
    }
    .calls(3)
    .requests { call in ("hello", ["x-user": ["user-\(call % 2)"]]) }
    .allowing(.failure)
    .check("the token of the user") { run in
      run.attempts.allSatisfy {
        $0.headers["authorization"] == $0.headers["x-user"].map { "Bearer token-of-\($0)" }
      }
    }
  )
}
