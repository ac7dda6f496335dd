// Extracted from Sources/Connect/Connect.docc/WhatTheModelsOffer.md by `make generate`.

import Connect
import ConnectInterceptors
import ConnectNIO
import Logging
import NIOCore

/// Tries calls again that were aborted. The whole chain sees each attempt.
final class AbortedAgain: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(retryFunction: { outcome in
      outcome.code == .aborted ? RetryRequest(after: .milliseconds(20)) : nil
    })
  }
}

/// The same, if the session of the call has ended: with a new session, which hooks outside put into the request.
struct NewSession: AsyncUnaryInterceptor {
  let open: @Sendable () async throws -> Void

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    try await self.open()
    throw RetryRequest(from: .start)
  }
}

/// Counts the bytes of a response's body.
final class ByteCount: WireInterceptor {
  private let report: @Sendable (Int) -> Void
  private var count = 0

  init(report: @escaping @Sendable (Int) -> Void) { self.report = report }

  func wireFunction() -> WireFunction {
    WireFunction(
      responseChunkFunction: { bytes, proceed in
        self.count += bytes.readableBytes
        proceed(bytes)
      },
      endFunction: { _ in self.report(self.count) }
    )
  }
}

struct Report: Codable, Sendable {
  init(csv: String) throws {}
}

struct PatientUsers: InterceptorProvider {
  func interceptors<Input, Output>(
    for request: HTTPRequest<Input?>,
    of method: MethodSpec<Input, Output>
  ) -> MethodInterceptors {
    request.headers.contains("x-patient") ? [{ _ in AbortedAgain() }] : []
  }
}

private func Connect_WhatTheModelsOffer_2() async throws {
  let transport = WireHTTPClient(
    NIOHTTPClient(),
    interceptors: [{ _ in ByteCount { count in print(count, "bytes") } }]
  )
  _ = transport
}

private func Connect_WhatTheModelsOffer_3() async throws {
  var config: ProtocolClientConfig = given()
  config.methodFormats = { method in
    guard method.name == "GetReport" else { return nil }
    return MethodFormat(
      codec: JSONCodec(),
      responseParser: ResponseParser(for: Report.self) { response in
        guard response.httpHeaders.first("content-type") == "text/csv" else { return nil }
        return try Report(csv: String(buffer: response.message))
      }
    )
  }
  _ = config
}

private func Connect_WhatTheModelsOffer_4() async throws {
  var config: ProtocolClientConfig = given()
  config.interceptorProvider = PatientUsers()
  _ = config
}

private func Connect_WhatTheModelsOffer_5() async throws {
  var rules = ResponseCache.Configuration(timeToLive: .seconds(300))
  rules.setRules(
    for: Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say,
    isStale: { response, age in age > .seconds(10) && response.message?.sentence.hasSuffix("?") == true },
    shouldStore: { response, _ in response.message?.sentence.isEmpty == false }
  )
  let cache = ResponseCache(configuration: rules)
  _ = rules
  _ = cache
}

private func Connect_WhatTheModelsOffer_6() async throws {
  var config: ProtocolClientConfig = given()
  let store = FileCredentialStore(path: "/var/lib/tool/credentials.json")
  let credentials = Credentials(for: ["api.example.com"], store: store) { refresh in
    AccessToken("t0k3n", refreshToken: refresh.previous?.refreshToken, expiresIn: .seconds(3600))
  }
  let jar = CookieJar()
  config.interceptors = [{ _ in CredentialsInterceptor(credentials) }, { _ in CookieInterceptor(jar) }]
  _ = config
  _ = store
  _ = credentials
  _ = jar
}

private func Connect_WhatTheModelsOffer_7() async throws {
  var config: ProtocolClientConfig = given()
  let version = Adapter { request, _, completion in
    var request = request
    request.headers["x-client-version"] = ["7"]
    completion(.success(request))
  }
  let busy = Retrier { attempt, completion in
    completion(attempt.error.code == .resourceExhausted ? .retryWithDelay(.seconds(1)) : .doNotRetry)
  }
  config.interceptors = .composed(adapters: [version], retriers: [busy], interceptors: [{ _ in AbortedAgain() }])
  _ = config
  _ = version
  _ = busy
}

private func Connect_WhatTheModelsOffer_8() async throws {
  var config: ProtocolClientConfig = given()
  var parts = ClientParts(logger: Logger(label: "calls"))
  parts.insert(before: RetryInterceptor.self) { _ in AbortedAgain() }
  parts.remove(CircuitBreakerInterceptor.self)
  config.interceptors = .recommended(for: parts)
  _ = config
  _ = parts
}
