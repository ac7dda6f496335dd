internal import Connect
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

/// Tokens for what users may reach.
final class UserTokenCache: Sendable {
  private let tokens = Mutex<[String: String]>([:])
  private let fetch: @Sendable (_ user: String) async throws -> String

  init(fetch: @escaping @Sendable (_ user: String) async throws -> String) {
    self.fetch = fetch
  }

  /// The bug: the key lacks the user.
  func token(for resource: String, user: String) async throws -> String {
    if let token = self.tokens.withLock({ $0[resource] }) { return token }
    let token = try await self.fetch(user)
    self.tokens.withLock { $0[resource] = token }
    return token
  }
}

/// Shows the token of the user whom a header names.
struct WrongUser: AsyncUnaryByteInterceptor {
  let tokens: UserTokenCache
  let userHeader: String

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    var request = request
    let user = request.headers.first(self.userHeader) ?? "nobody"
    let token = try await self.tokens.token(for: request.url.host, user: user)
    request.headers["authorization"] = ["Bearer \(token)"]
    return try await next(request)
  }
}

extension ExplorationCase {
  static let wrongUser = ExplorationCase(
    "WrongUser",
    source: "AzureAD/azure-activedirectory-library-for-dotnet#499",
    breaking: ["the token of the user", "values stay in their call"],
    InterceptorExplorer { world in
      let tokens = UserTokenCache { user in
        try await world.step("token endpoint")
        return "token-of-\(user)"
      }
      return Subject { _ in WrongUser(tokens: tokens, userHeader: "x-user") }
    }
    .calls(2)
    .requests { call in ("hello", ["x-user": ["user-\(call)"]]) }
    .check("the token of the user") { run in
      run.attempts.allSatisfy {
        $0.headers["authorization"] == $0.headers["x-user"].map { "Bearer token-of-\($0)" }
      }
    }
  )
}
