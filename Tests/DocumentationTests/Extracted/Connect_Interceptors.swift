// Extracted from Sources/Connect/Connect.docc/Interceptors.md by `make generate`.

import Connect
import ConnectInterceptors
import ConnectTesting
import Logging
import NIOCore
import Synchronization
import XCTest

final class BearerTokenInterceptor: Interceptor {
  typealias FetchToken = @Sendable (_ host: String, _ completion: @escaping @Sendable (String) -> Void) -> Void
  private let fetchToken: FetchToken

  init(fetchToken: @escaping FetchToken) {
    self.fetchToken = fetchToken
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { [fetchToken] request, proceed in
        fetchToken(request.url.host) { token in
          var request = request
          request.headers["authorization"] = ["Bearer \(token)"]
          proceed(.success(request))
        }
      },
      responseFunction: { response, proceed in
        // The server refused the call and did not process it: a retry is safe, whatever the method does.
        if response.code == .unauthenticated {
          proceed.retry(after: .milliseconds(100))
        } else {
          proceed(response)
        }
      }
    )
  }
}

/// Adds an interceptor to long sentences.
struct LongSentences: InterceptorProvider {
  func interceptors<Input, Output>(
    for request: HTTPRequest<Input?>,
    of method: MethodSpec<Input, Output>
  ) -> MethodInterceptors {
    guard let say = request.message as? Connectrpc_Eliza_V1_SayRequest, say.sentence.count > 1000 else { return [] }
    return [{ _ in TenantHeader() }]
  }
}

enum TenantKey: CallContextKey {
  static let defaultValue: String? = nil
}

final class TenantHeader: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(
      requestFunction: { request in
        guard let tenant = request.context[TenantKey.self] else { throw ConnectError(code: .unauthenticated) }
        request.headers["x-tenant"] = [tenant]
      },
      outcomeFunction: { outcome in
        if let error = outcome.error { print("\(method.path): \(error), attempts: \(outcome.attempts)") }
      }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(updateResponse: { response in
      // Only a method that says so may be processed twice.
      guard response.code == .aborted, method.idempotencyLevel != .unknown else { return .proceed }
      return .retry(after: .milliseconds(50))
    })
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateRequest: { request in request.headers["x-get"] = ["\(request.isGET)"] })
  }
}

final class AttemptCounter: Interceptor {
  func attemptFunction() -> AttemptFunction? {
    { event in
      if case .ended(let attempt) = event { print("\(attempt.kind) \(attempt.number) ended with \(attempt.code)") }
    }
  }
}

/// Counts the calls that are under way. One object for all calls.
final class CallGauge: Sendable {
  let count = Atomic<Int>(0)
}

final class GaugeInterceptor: Interceptor {
  private let gauge: CallGauge

  init(_ gauge: CallGauge) {
    self.gauge = gauge
    gauge.count.add(1, ordering: .relaxed)
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { [gauge] _ in _ = gauge.count.subtract(1, ordering: .relaxed) })
  }
}

final class SessionInterceptor: Interceptor {
  private let openSession: @Sendable () async throws -> String
  private var session: String?  // Of this call alone: kept for its retries.

  init(openSession: @escaping @Sendable () async throws -> String) {
    self.openSession = openSession
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      proceed.task {
        do {
          let session = if let known = self.session { known } else { try await self.openSession() }
          self.session = session
          var request = request
          request.headers["x-session"] = [session]
          proceed(.success(request))
        } catch {
          proceed(.failure(ConnectError(error, code: .unauthenticated)))
        }
      }
    })
  }
}

/// Moves a call to another tenant, if the server says that it has moved. Everything that depends on the tenant runs again.
final class TenantMove: Interceptor {
  private var tenant: String?

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { request in
      if let tenant = self.tenant { request.context[TenantKey.self] = tenant }
    })
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(responseFunction: { response, proceed in
      guard response.code == .failedPrecondition, let tenant = response.httpHeaders.first("x-moved-to") else {
        return proceed(response)
      }
      self.tenant = tenant
      proceed.retry(from: .start)
    })
  }
}

/// The same from a call hook, with the request of the caller.
final class ThirdTimeLucky: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(retryFunction: { outcome in
      outcome.code == .aborted && outcome.attempts < 3 ? RetryRequest(after: .milliseconds(50)) : nil
    })
  }
}

/// The same from the async form, which throws the retry.
struct LoginAgain: AsyncUnaryInterceptor {
  let logIn: @Sendable () async throws -> Void

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    try await self.logIn()
    throw RetryRequest(request)
  }
}

struct StopwatchInterceptor: AsyncUnaryInterceptor {
  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let start = ContinuousClock.now
    let response = try await next(request)
    print(method.path, response.code, ContinuousClock.now - start)
    return response
  }
}

struct RecoveryInterceptor: AsyncStreamInterceptor {
  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await next(request).recoverErrors { error in
      // Headers are held back until here, so a stream that has shown no message can be retried.
      error.code == .unavailable && method.idempotencyLevel != .unknown ? try await next(request) : nil
    }
  }
}

struct SigningInterceptor: AsyncUnaryByteInterceptor {
  let sign: @Sendable (ByteBuffer) async throws -> String

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    var request = request
    request.headers["x-signature"] = [try await self.sign(request.message)]
    return try await next(request)
  }
}

final class SentenceCounter: Interceptor {
  private var received = 0

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { request, proceed in
        var request = request
        request.headers["x-counted"] = ["true"]
        proceed(.success(request))
      },
      streamResultFunction: { result, proceed in
        if result.message != nil { self.received += 1 }
        if case .complete(let code, _, _) = result { print(method.path, code, self.received) }
        proceed(result)
      }
    )
  }
}

final class BearerTokenInterceptorTests: XCTestCase {
  func testAddsTheToken() async throws {
    let driver = InterceptorDriver { _ in BearerTokenInterceptor { host, completion in completion("for \(host)") } }
    let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(outcome.request?.headers["authorization"], ["Bearer for interceptor.test"])
  }

  func testRetriesWhatTheServerRefused() async throws {
    let driver = InterceptorDriver { _ in BearerTokenInterceptor { _, completion in completion("t0k3n") } }
    let refused = HTTPResponse(error: ConnectError(code: .unauthenticated))
    let outcome = try await driver.unary.response(refused).outcome
    XCTAssertEqual(outcome.retryDelay, .milliseconds(100))
  }
}

private func Connect_Interceptors_1() async throws {
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in BearerTokenInterceptor { host, completion in completion("t0k3n") } }]
  )
  _ = config
}

private func Connect_Interceptors_2() async throws {
  var config: ProtocolClientConfig = given()
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  config.methodInterceptors = { method in
    switch method.name {
    case "Login": .replacing([])  // None of the client's.
    case "Say": [{ _ in TenantHeader() }]  // Inside those of the client.
    default: []
    }
  }

  let options = CallOptions(interceptors: [{ _ in TenantHeader() }])
  let answer = try await eliza.say(.with { $0.sentence = "Hello" }, options: options)
  _ = config
  _ = eliza
  _ = options
  _ = answer
}

private func Connect_Interceptors_3() async throws {
  var config: ProtocolClientConfig = given()
  config.interceptorProvider = LongSentences()
  _ = config
}

private func Connect_Interceptors_4() async throws {
  var options = CallOptions()
  options.context[TenantKey.self] = "acme"
  _ = options
}

private func Connect_Interceptors_13() async throws {
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

private func Connect_Interceptors_14() async throws {
  let parts = ClientParts(logger: Logger(label: "calls"))
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: .recommended(for: parts),
    contextPropagators: [ServiceContextPropagator()]
  )
  _ = parts
  _ = config
}
