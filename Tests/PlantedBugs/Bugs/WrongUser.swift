internal import Connect
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
