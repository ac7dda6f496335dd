// Extracted from Sources/Connect/Connect.docc/MigratingFromAlamofire.md by `make generate`.

import Connect
import ConnectInterceptors
import NIOCore

extension ProtocolClientConfig {
  /// With a key in each request, and another attempt after conflicts.
  static func withKey(_ key: String) -> ProtocolClientConfig {
    let adapter = Adapter { request, method in
      var request = request
      request.headers["x-api-key"] = [key]
      return request
    }
    let conflicts = Retrier { attempt in
      guard attempt.error.code == .aborted, attempt.number < 3 else { return .doNotRetry }
      return .retryWithDelay(.milliseconds(50))
    }
    return ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [
        { _ in RequestInterceptor(adapters: [adapter], retriers: [conflicts, ConnectionLostRetrier()]) }
      ]
    )
  }
}

struct VersionAdapter: RequestAdapter {
  let version: Int

  func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo) async throws -> HTTPRequest<ByteBuffer?> {
    var request = request
    request.headers["x-client-version"] = ["\(self.version)"]
    return request
  }
}

extension ProtocolClientConfig {
  /// With a token, which `fetch` gets when it is needed.
  static func withToken(_ fetch: @escaping @Sendable () async throws -> String) -> ProtocolClientConfig {
    let credentials = Credentials(for: ["api.example.com"]) { _ in
      AccessToken(try await fetch(), expiresIn: .seconds(3600))
    }
    return ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in CredentialsInterceptor(credentials) }]
    )
  }
}
