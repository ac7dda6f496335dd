internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import LoopbackServer
internal import SwiftProtobuf

typealias LookupRequest = Connect_Test_V1_LookupRequest
typealias LookupResponse = Connect_Test_V1_LookupResponse

/// A server in memory whose every answer is another one, a client with a cache, and virtual time.
struct CacheScene: Sendable {
  let executor = VirtualExecutor()
  let transport: InMemoryTransport
  let cache: ResponseCache
  let client: ProtocolClient
  /// The requests that got to the server.
  let requests = Observed<[ServerRequestHead]>([])
  /// What the server says in its headers.
  let headers = Observed<Headers>([:])
  /// What the server fails with.
  let failure = Observed<ConnectError?>(nil)
  /// Whether the server answers.
  let isOpen = Observed(true)

  /// - Parameters:
  ///   - outside: Interceptors around those of the cache.
  ///   - between: Interceptors between reading and writing.
  init(
    _ configuration: ResponseCache.Configuration = .defaults,
    storage: any CacheStorage = MemoryCacheStorage(),
    networkProtocol: NetworkProtocol = .connect,
    unaryGET: UnaryGET = .alwaysEnabled,
    retries: ProtocolClientConfig.Retries = .defaults,
    outside: [InterceptorFactory] = [],
    between: [InterceptorFactory] = []
  ) {
    self.transport = InMemoryTransport(executor: self.executor)
    let cache = ResponseCache(configuration: configuration, storage: storage, clock: self.executor.clock)
    self.cache = cache
    self.client = ProtocolClient(
      httpClient: self.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        networkProtocol: networkProtocol,
        interceptors: outside + [{ _ in CacheReadInterceptor(cache) }] + between
          + [{ _ in CacheWriteInterceptor(cache) }],
        unaryGET: unaryGET,
        retries: retries
      )
    )
    self.transport.onUnary(TestMethods.lookup) { [requests, headers, failure, isOpen] request, context in
      let number = requests.update { requests in
        requests.append(context.request)
        return requests.count
      }
      _ = await isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
      context.responseHeaders.append(contentsOf: headers.value)
      if let failure = failure.value { throw failure }
      return .with { $0.value = "\(request.key) \(number)" }
    }
  }

  var requestCount: Int { self.requests.value.count }

  func lookup(
    _ key: String = "k",
    _ policy: CachePolicy? = nil,
    headers: Headers = [:],
    partition: String? = nil,
    timeout: Duration? = nil
  ) async -> ResponseMessage<LookupResponse> {
    await self.client.unary(
      TestMethods.lookup,
      .with { $0.key = key },
      options: .cached(policy, headers: headers, partition: partition, timeout: timeout)
    )
  }

  /// The value of a call that has to succeed.
  func value(
    _ key: String = "k",
    _ policy: CachePolicy? = nil,
    headers: Headers = [:],
    partition: String? = nil
  ) async throws -> String {
    try await self.lookup(key, policy, headers: headers, partition: partition).get().value
  }

  /// Starts calls that a test then lets go on.
  func start(_ count: Int, _ key: String = "k", options: CallOptions = CallOptions()) -> LookupCalls {
    let calls = LookupCalls()
    for _ in 0..<count { calls.start(self.client, key, options) }
    self.executor.runUntilIdle()
    return calls
  }
}

extension CacheScene {
  typealias MessageRule = @Sendable (ResponseMessage<LookupResponse>, Duration) -> Bool

  /// With rules about the responses of the only method.
  static func ruled(
    _ configuration: ResponseCache.Configuration = .defaults,
    storage: any CacheStorage = MemoryCacheStorage(),
    networkProtocol: NetworkProtocol = .connect,
    isStale: MessageRule? = nil,
    shouldStore: MessageRule? = nil
  ) -> CacheScene {
    var configuration = configuration
    configuration.setRules(for: TestMethods.lookup, isStale: isStale, shouldStore: shouldStore)
    return CacheScene(configuration, storage: storage, networkProtocol: networkProtocol)
  }
}

/// Calls under way, and their outcomes, in the order of the calls.
final class LookupCalls: Sendable {
  private let state = Observed<(handles: [CallHandle], outcomes: [Int: ResponseMessage<LookupResponse>])>(
    ([], [:])
  )

  func start(_ client: ProtocolClient, _ key: String, _ options: CallOptions) {
    let index = self.state.value.handles.count
    let handle = client.unary(TestMethods.lookup, .with { $0.key = key }, options: options) { response in
      self.state.update { $0.outcomes[index] = response }
    }
    self.state.update { $0.handles.append(handle) }
  }

  func cancel(_ index: Int) { self.state.value.handles[index].cancel() }

  var outcomes: [Int: ResponseMessage<LookupResponse>] { self.state.value.outcomes }

  var values: [String] {
    self.outcomes.sorted { $0.key < $1.key }.map { $0.value.message?.value ?? "\($0.value.code)" }
  }

  /// Waits for all outcomes.
  func wait() async -> [String] {
    _ = await self.state.wait(within: .seconds(60)) { $0.outcomes.count == $0.handles.count ? true : nil }
    return self.values
  }
}

extension CallOptions {
  static func cached(
    _ policy: CachePolicy? = nil,
    headers: Headers = [:],
    partition: String? = nil,
    timeout: Duration? = nil
  ) -> CallOptions {
    var options = CallOptions(headers: headers, timeout: timeout)
    options.context[CachePolicy.self] = policy
    options.context[CachePartition.self] = partition
    return options
  }
}
