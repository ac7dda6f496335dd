internal import Connect
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
