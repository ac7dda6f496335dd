import Connect
import ConnectInterceptors
import ConnectTesting
import InMemoryTracing
import Logging
import LoopbackServer
import MetricsTestKit
import NIOCore
import SwiftProtobuf

/// The chain of a ``RandomChain`` of real interceptors, with a probe around each, a client, and a server in memory.
struct RandomChainScene: Sendable {
  typealias CountResponse = Connect_Test_V1_CountResponse

  static let stream = MethodSpec<Connect_Test_V1_CountRequest, CountResponse>(
    path: TestMethods.count.path,
    streamType: .serverStream,
    idempotencyLevel: .noSideEffects
  )

  let chain: RandomChain
  let executor = VirtualExecutor()
  let probe = InterceptorProbe()
  /// How many attempts the server has answered.
  let servedCount = Observed(0)
  let tokenCount = Observed(0)
  private let transport: InMemoryTransport
  private let client: ProtocolClient
  /// Calls that take all places of a limiter.
  private let occupants = Observed<[CallHandle]>([])

  init(_ chain: RandomChain) async {
    self.chain = chain
    let transport = InMemoryTransport(executor: self.executor)
    self.transport = transport
    let answer: @Sendable (_ isStream: Bool) throws -> (text: String, late: ConnectError?) = {
      [servedCount] isStream in
      let number = servedCount.update { count in
        count += 1
        return count
      }
      switch chain.answers[(number - 1) % chain.answers.count] {
      case .good: return ("\(number)", nil)
      case .error(let code): throw ConnectError(code: code)
      case .lastError(let code):
        throw ConnectError(code: code, metadata: ["grpc-retry-pushback-ms": ["-1"]])
      case .lateError(let code):
        guard isStream else { throw ConnectError(code: code) }
        return ("", ConnectError(code: code))
      }
    }
    transport.onUnary(TestMethods.lookup) { _, _ in
      let text = try answer(false).text
      return .with { $0.value = text }
    }
    transport.onServerStream(Self.stream) { _, responses, _ in
      let (text, error) = try answer(true)
      try await responses.send(.with { $0.number = Int64(text) ?? 0 })
      if let error { throw error }
    }
    transport.onUnary(TestMethods.echo) { _, context in
      try await context.sleep(for: .seconds(3600))
      return .init()
    }

    let probe = self.probe
    let place: (Int) -> InterceptorFactory = { index in
      probe.factory("\(index)", levels: [.call, .byte, chain.asyncProbes[index] ? .async : .message])
    }
    let shared = Shared(executor: self.executor, tokenCount: self.tokenCount)
    var interceptors = [place(0)]
    for (index, link) in chain.links.enumerated() {
      interceptors += [await shared.factory(link, transport, self.occupants), place(index + 1)]
    }
    self.client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: Shared.host,
        networkProtocol: chain.wire.networkProtocol,
        interceptors: interceptors,
        unaryGET: .alwaysEnabled,
        retries: .init(maximumRetries: chain.maximumRetries)
      )
    )
  }

  /// What a call comes to, as the model says it.
  func run(_ call: RandomChain.Call) async throws -> (text: String?, code: String, messageCount: Int) {
    self.probe.removeAll()
    var options = CallOptions()
    options.context[CachePolicy.self] = call.policy
    guard call.isStream else {
      let response = await self.client.unary(TestMethods.lookup, .with { $0.key = "k" }, options: options)
      return (response.message?.value, response.code.name, 0)
    }
    let stream = try await self.client.serverStream(Self.stream, .init(), options: options).results
      .collected()
    let text = stream.code == .ok ? stream.messages.first.map { "\($0.number)" } : nil
    return (text, stream.code.name, stream.code == .ok ? 0 : stream.messages.count)
  }

  /// What the probes have seen of requests and of ends.
  var events: [String] { self.probe.events.compactMap(\.brief) }

  func end() {
    for call in self.occupants.value { call.cancel() }
    self.executor.runUntilIdle()
  }
}

extension RandomChain.Wire {
  fileprivate var networkProtocol: NetworkProtocol {
    switch self {
    case .connect: .connect
    case .grpc: .grpc
    case .grpcWeb: .grpcWeb
    }
  }
}

extension HookEvent {
  /// `0 call request`, `2 byte request`, `2 byte response not_found`; nil for what is between the two in a stream. The async form counts
  /// as messages.
  fileprivate var brief: String? {
    let name = "\(self.interceptor) \(self.level == .async ? "message" : self.level.rawValue)"
    if self.hook == .request { return "\(name) request" }
    guard let code = (self.value as? any Ending)?.endCode else { return nil }
    return "\(name) response \(code.name)"
  }
}

/// What may be the end of a call.
private protocol Ending {
  var endCode: Code? { get }
}

extension HTTPResponse: Ending {
  fileprivate var endCode: Code? { self.error?.code ?? .ok }
}

extension CallOutcome: Ending {
  fileprivate var endCode: Code? { self.code }
}

extension ResponseMessage: Ending {
  fileprivate var endCode: Code? { self.error?.code ?? .ok }
}

extension StreamResult: Ending {
  fileprivate var endCode: Code? {
    if case .complete(let code, _, _) = self { code } else { nil }
  }
}

/// What the interceptors of a chain share.
private struct Shared {
  static let host = "https://api.test"

  let executor: VirtualExecutor
  let tokenCount: Observed<Int>
  let cache: ResponseCache

  init(executor: VirtualExecutor, tokenCount: Observed<Int>) {
    self.executor = executor
    self.tokenCount = tokenCount
    self.cache = ResponseCache(
      configuration: .init(
        // What differs from attempt to attempt.
        keyHeaders: .all(except: [
          "x-request-id", "in-memory-trace-id", "in-memory-span-id", "grpc-previous-rpc-attempts",
        ])
      ),
      clock: executor.clock
    )
  }

  func factory(
    _ link: RandomChain.Link,
    _ transport: InMemoryTransport,
    _ occupants: Observed<[CallHandle]>
  ) async -> InterceptorFactory {
    switch link {
    case .context:
      return { _ in ContextInterceptor() }
    case .tracing:
      let tracer = InMemoryTracer()
      return { TracingInterceptor(config: $0, tracer: tracer) }
    case .metrics:
      let metrics = CallMetrics(factory: TestMetrics(), clock: self.executor.clock)
      return { MetricsInterceptor(metrics, config: $0) }
    case .logging:
      let log = CallLog(logger: CallLogRecorder().makeLogger(level: .trace), clock: self.executor.clock)
      return { LoggingInterceptor(log, config: $0) }
    case .status(let acceptsAnswers):
      return { _ in HTTPStatusInterceptor(accepting: acceptsAnswers ? [200] : []) }
    case .credentials:
      let credentials = Credentials(
        for: ["api.test"],
        configuration: .init(window: .init(maximumRefreshes: 1000)),
        clock: self.executor.clock
      ) { [tokenCount] _ in
        let number = tokenCount.update { count in
          count += 1
          return count
        }
        return AccessToken("token \(number)")
      }
      return { _ in CredentialsInterceptor(credentials) }
    case .cacheRead:
      return { [cache] _ in CacheReadInterceptor(cache) }
    case .cacheWrite:
      return { [cache] _ in CacheWriteInterceptor(cache) }
    case .persistedRequest:
      let requests = PersistedRequests(minimumByteCount: 0, clock: self.executor.clock)
      return { _ in PersistedRequestInterceptor(requests) }
    case .retry(let maximumAttempts, let hasBudget):
      let policy = RetryPolicy(maximumAttempts: maximumAttempts, backoff: Backoff(base: .zero))
      let budget = RetryBudget(maximumTokens: hasBudget ? 1_000_000 : 1, tokenRatio: 0.001)
      // Used up before, since not every failure here takes a token: what an interceptor inside fails was never sent.
      if !hasBudget { budget.recordFailure() }
      return { _ in RetryInterceptor(policy: policy, budget: budget) }
    case .adapters(let fail):
      return { _ in RequestInterceptor(adapters: [Self.adapter(fails: fail)]) }
    case .adaptersAndRetriers:
      return { _ in
        RequestInterceptor(adapters: [Self.adapter(fails: false)], retriers: [Self.again, Self.instead])
      }
    case .circuitBreaker(let isOpen):
      let breaker = CircuitBreaker(
        .init(minimumCalls: isOpen ? 1 : .max, openDuration: .seconds(3600)),
        clock: self.executor.clock
      )
      if isOpen {
        transport.inject(.refuseConnection, calls: 1)
        let client = self.client(transport) { _ in CircuitBreakerInterceptor(breaker) }
        _ = await client.unary(TestMethods.lookup, .init())
      }
      return { _ in CircuitBreakerInterceptor(breaker) }
    case .concurrencyLimit(let isFull):
      let limiter = ConcurrencyLimiter(maximumCalls: 1, maximumWaiting: 0, clock: self.executor.clock)
      if isFull {
        let client = self.client(transport) { _ in ConcurrencyLimitInterceptor(limiter) }
        let call = client.unary(TestMethods.echo, .init()) { _ in }
        occupants.update { $0.append(call) }
        self.executor.runUntilIdle()
      }
      return { _ in ConcurrencyLimitInterceptor(limiter) }
    case .own(let failedAttempts):
      return ScriptedInterceptor.factory(
        .fail(ConnectError(code: .unavailable), attempts: failedAttempts),
        level: .byte
      )
    case .maximumRetries(let maximum):
      return { _ in MaximumRetriesInterceptor(maximum) }
    }
  }

  private func client(
    _ transport: InMemoryTransport,
    _ interceptor: @escaping InterceptorFactory
  ) -> ProtocolClient {
    ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: Self.host, interceptors: [interceptor])
    )
  }

  private static func adapter(fails: Bool) -> Adapter {
    Adapter { request, _ in
      if fails { throw ConnectError(code: .permissionDenied) }
      var request = request
      request.headers["x-adapted"] = ["yes"]
      return request
    }
  }

  private static let again = Retrier { attempt in
    attempt.error.code == .aborted && attempt.number < 3 ? .retry : .doNotRetry
  }

  private static let instead = Retrier { attempt in
    attempt.error.code == .notFound ? .doNotRetryWithError(ConnectError(code: .dataLoss)) : .doNotRetry
  }
}
