// Extracted from the doc comments of Sources/ConnectInterceptors by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func Credentials_File_1() async throws {
    let credentials = Credentials.file("/var/run/secrets/tokens/api", for: ["api.example.com"])
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in CredentialsInterceptor(credentials) }]
    )
    _ = credentials
    _ = config
  }

  private func Credentials_1() async throws {
    let credentials = Credentials(for: ["api.example.com"]) { refresh in
      let response = try await login.getToken(.with { $0.clientID = id })
      return AccessToken(response.token, expiresIn: .seconds(response.expiresIn))
    }
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in CredentialsInterceptor(credentials) }]
    )
    _ = credentials
    _ = config
  }

  private func CredentialsRefresh_1() async throws {
    login.getToken(request: .with { $0.clientID = id }, options: refresh.options) { response in
      completion(response.result)
    }
  }

  private func CredentialsRefresh_2() async throws {
    options.context[WithoutCredentials.self] = true
  }

  private func FileCredentialStore_1() async throws {
    let store = FileCredentialStore(path: "/home/ada/.config/tool/credentials.json")
    let credentials = Credentials(for: ["api.example.com"], store: store) { refresh in
      let old = refresh.previous?.refreshToken
      let response = try await login.getToken(.with { $0.refreshToken = old })
      return AccessToken(
        response.token,
        refreshToken: response.refreshToken ?? old,
        expiresIn: .seconds(response.expiresIn)
      )
    }
    _ = store
    _ = credentials
  }

  private func CacheAndNetwork_1() async throws {
    for await response in client.cacheAndNetwork(lookup, request) { show(response) }
  }

  private func CachePolicy_1() async throws {
    options.context[CachePolicy.self] = .networkFirst
  }

  private func CacheStatus_1() async throws {
    if CacheStatus(response.headers) == .stale { warn() }
  }

  private func MessageRules_1() async throws {
    var configuration = ResponseCache.Configuration.defaults
    configuration.setRules(
      for: say,
      isStale: { response, age in age > .seconds(10) && response.message?.sentence.isEmpty == true },
      shouldStore: { response, _ in response.message?.sentence != "busy" }
    )
    _ = configuration
  }

  private func ResponseCache_1() async throws {
    let cache = ResponseCache()
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }],
      unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
    )
    _ = cache
    _ = config
  }

  private func Baggage_1() async throws {
    options.context.baggage["tenant"] = "acme"
  }

  private func CallContext_Headers_1() async throws {
    try await CallContext.withValues { $0.read(requestHeaders: headers) } operation: { try await answer(request) }
  }

  private func ContextInterceptor_1() async throws {
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in ContextInterceptor() }]
    )
    _ = config
  }

  private func CookieInterceptor_1() async throws {
    config.interceptors = [
      { _ in CookieInterceptor(jar, .requests) },
      { _ in CacheReadInterceptor(cache) },
      { _ in CacheWriteInterceptor(cache) },
      { _ in RetryInterceptor(budget: budget) },
      { _ in CookieInterceptor(jar, .responses) },
    ]
  }

  private func CookieJar_1() async throws {
    let jar = CookieJar()
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in CookieInterceptor(jar) }]
    )
    _ = jar
    _ = config
  }

  private func CircuitBreaker_1() async throws {
    let breaker = CircuitBreaker()
    config.interceptors = [{ _ in CircuitBreakerInterceptor(breaker) }]
    _ = breaker
  }

  private func ConcurrencyLimiter_1() async throws {
    let limiter = ConcurrencyLimiter(maximumCalls: 100, maximumWaiting: 1000, maximumWait: .seconds(1))
    config.interceptors = [{ _ in ConcurrencyLimitInterceptor(limiter) }]
    _ = limiter
  }

  private func MaximumRetriesInterceptor_1() async throws {
    let options = CallOptions(interceptors: [{ _ in MaximumRetriesInterceptor(1) }])
    _ = options
  }

  private func CallMetrics_1() async throws {
    let metrics = CallMetrics(options: CallMetrics.Options(families: [.openTelemetry, .grpc]))
    _ = metrics
  }

  private func ChannelMetrics_1() async throws {
    var channel = ChannelConfiguration.defaults
    channel.observer = ChannelMetrics()
    _ = channel
  }

  private func CallExplainer_1() async throws {
    let explainer = CallExplainer()
    let response = await client.unary(say, request, options: CallOptions().explained(by: explainer))
    print(explainer.explanation)
    _ = explainer
    _ = response
  }

  private func LoggingInterceptor_1() async throws {
    let log = CallLog(logger: Logger(label: "calls"))
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ LoggingInterceptor(log, config: $0) }]
    )
    _ = log
    _ = config
  }

  private func MetricsInterceptor_1() async throws {
    let metrics = CallMetrics()
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ MetricsInterceptor(metrics, config: $0) }]
    )
    _ = metrics
    _ = config
  }

  private func SensitiveHeaders_1() async throws {
    _ = CallFunction(requestFunction: { request in
      request.headers["x-service-token"] = [token]
      request.context[SensitiveHeaders.self].insert("x-service-token")
    })
  }

  private func TracingInterceptor_1() async throws {
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ TracingInterceptor(config: $0) }]
    )
    _ = config
  }

  private func ClientParts_1() async throws {
    var parts = ClientParts(logger: Logger(label: "calls"))
    parts.credentials = credentials
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: .recommended(for: parts),
      contextPropagators: [ServiceContextPropagator()]
    )
    _ = parts
    _ = config
  }

  private func ClientParts_2() async throws {
    parts.insert(before: RetryInterceptor.self) { MyInterceptor(config: $0) }
    parts.replace(LoggingInterceptor.self) { MyInterceptor(config: $0) }
  }

  private func ConnectionLostRetrier_1() async throws {
    config.interceptors = [{ _ in RequestInterceptor(retriers: [ConnectionLostRetrier()]) }]
  }

  private func RequestAdapter_1() async throws {
    let version = Adapter { request, _ in
      var request = request
      request.headers["x-client-version"] = ["7"]
      return request
    }
    _ = version
  }

  private func RequestCompletion_1() async throws {
    let token = Adapter { request, _, completion in
      login.getToken(request: .with { $0.clientID = id }) { response in
        completion(
          Result {
            var request = request
            request.headers["x-token"] = [try response.get().token]
            return request
          }
        )
      }
    }
    _ = token
  }

  private func RequestComposition_1() async throws {
    let parts = RequestComposition(adapters: [version], retriers: [once])
    config.interceptors = [{ _ in RequestInterceptor(retriers: [ConnectionLostRetrier()], interceptors: [parts]) }]
    _ = parts
  }

  private func RequestComposition_2() async throws {
    config.interceptors = .composed(
      adapters: [version],
      retriers: [once],
      interceptors: [{ MyInterceptor(config: $0) }]
    )
  }

  private func RequestInterceptor_1() async throws {
    config.interceptors = [{ _ in RequestInterceptor(adapters: [version, signature], retriers: [once]) }]
  }

  private func RequestRetrier_1() async throws {
    let once = Retrier { attempt in
      attempt.error.code == .aborted && attempt.number == 1 ? .retryWithDelay(.milliseconds(50)) : .doNotRetry
    }
    _ = once
  }

  private func RetryInterceptor_1() async throws {
    let budget = RetryBudget()
    config.interceptors = [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }]
    _ = budget
  }

  private func RequestSigner_1() async throws {
    let transport = WireHTTPClient(
      NIOHTTPClient(),
      interceptors: [{ _ in RequestSigner(keyID: "k1", secret: secret) }]
    )
    _ = transport
  }

  private func WireHTTPClient_1() async throws {
    let tap = WireTap(lines: { print($0, terminator: "") })
    let transport = WireHTTPClient(
      NIOHTTPClient(),
      interceptors: [
        { _ in RequestSigner(keyID: "k1", secret: secret) },
        { exchange in WireTapInterceptor(tap, exchange) },
      ]
    )
    let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "https://api.example.com"))
    _ = tap
    _ = transport
    _ = client
  }

  private func WireInterceptor_1() async throws {
    final class ByteCounter: WireInterceptor {
      private var count = 0

      func wireFunction() -> WireFunction {
        WireFunction(
          responseChunkFunction: { bytes, proceed in
            self.count += bytes.readableBytes
            proceed(bytes)
          },
          endFunction: { outcome in print("\(self.count) bytes, \(outcome)") }
        )
      }
    }

    let transport = WireHTTPClient(NIOHTTPClient(), interceptors: [{ _ in ByteCounter() }])
    _ = transport
  }

  private func WireTap_1() async throws {
    let tap = WireTap(writingTo: 2)  // standard error
    let transport = WireHTTPClient(
      NIOHTTPClient(),
      interceptors: [{ exchange in WireTapInterceptor(tap, exchange) }],
      authenticatesClient: false
    )
    _ = tap
    _ = transport
  }
}
