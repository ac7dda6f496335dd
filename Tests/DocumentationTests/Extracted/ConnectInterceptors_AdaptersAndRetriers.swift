// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/AdaptersAndRetriers.md by `make generate`.

import Connect
import ConnectInterceptors
import NIOCore

struct TokenLogin: Sendable {
  func token(_ completion: @escaping @Sendable (Result<String, any Error>) -> Void) -> CallHandle { given() }
}

struct SessionHeaders: RequestAdapter, RequestRetrier {
  func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo) async throws -> HTTPRequest<ByteBuffer?> {
    var request = request
    request.headers["x-session"] = ["4711"]
    return request
  }

  func retry(_ attempt: FailedAttempt) async -> RetryResult {
    attempt.error.code == .unauthenticated && attempt.number == 1 ? .retry : .doNotRetry
  }
}

struct HookAudit: Interceptor {}

private func ConnectInterceptors_AdaptersAndRetriers_1() async throws {
  let version = Adapter { request, _ in
    var request = request
    request.headers["x-client-version"] = ["7"]
    return request
  }
  let conflicts = Retrier { attempt in
    guard attempt.error.code == .aborted, attempt.number < 3 else { return .doNotRetry }
    return .retryWithDelay(.milliseconds(50))
  }
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { _ in RequestInterceptor(adapters: [version], retriers: [conflicts, ConnectionLostRetrier()]) }
    ]
  )
  _ = version
  _ = conflicts
  _ = config
}

private func ConnectInterceptors_AdaptersAndRetriers_2() async throws {
  let login: TokenLogin = given()
  let token = Adapter { request, _, completion in
    let call = login.token { result in
      completion(
        result.map { token in
          var request = request
          request.headers["x-token"] = [token]
          return request
        }
      )
    }
    completion.onCancel { call.cancel() }
  }
  let busy = Retrier { attempt, completion in
    completion(attempt.error.code == .resourceExhausted ? .retryWithDelay(.seconds(1)) : .doNotRetry)
  }
  _ = login
  _ = token
  _ = busy
}

private func ConnectInterceptors_AdaptersAndRetriers_3() async throws {
  let composed: InterceptorFactory = { _ in
    RequestInterceptor(retriers: [ConnectionLostRetrier()], interceptors: [SessionHeaders()])
  }
  _ = composed
}

private func ConnectInterceptors_AdaptersAndRetriers_4() async throws {
  let key: Adapter = given()
  let list: [InterceptorFactory] = .composed(
    adapters: [key],
    retriers: [ConnectionLostRetrier()],
    interceptors: [{ _ in HookAudit() }]
  )
  _ = key
  _ = list
}
