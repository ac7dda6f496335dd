internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import Logging
internal import LoopbackServer
internal import SwiftProtobuf
internal import Synchronization

/// Hands out the tokens `token 1`, `token 2`, and so on, when a test lets it.
final class TokenProvider: Sendable {
  private struct State {
    var reasons: [CredentialsRefresh.Reason] = []
    var previous: [String?] = []
    var refreshTokens: [String?] = []
    var cancelled = 0
  }

  private let state = Mutex(State())
  private let isOpen: Observed<Bool>
  private let lifetime: Duration?
  private let error: (@Sendable (Int) -> (any Error)?)?

  /// The token that the provider gives as a number, from 1.
  static func token(_ number: Int, expiresIn lifetime: Duration? = nil) -> AccessToken {
    AccessToken("token \(number)", refreshToken: "refresh \(number)", expiresIn: lifetime)
  }

  /// - Parameters:
  ///   - isOpen: Whether a refresh ends at once, not only after ``open()``.
  ///   - error: What the refresh of a number, from 1, fails with.
  init(
    isOpen: Bool = true,
    lifetime: Duration? = nil,
    error: (@Sendable (Int) -> (any Error)?)? = nil
  ) {
    self.isOpen = Observed(isOpen)
    self.lifetime = lifetime
    self.error = error
  }

  /// How many refreshes there were.
  var count: Int { self.state.withLock { $0.reasons.count } }
  var reasons: [CredentialsRefresh.Reason] { self.state.withLock { $0.reasons } }
  var previous: [String?] { self.state.withLock { $0.previous } }
  var refreshTokens: [String?] { self.state.withLock { $0.refreshTokens } }
  /// How many refreshes ran in a task that was cancelled in the meantime.
  var cancelled: Int { self.state.withLock { $0.cancelled } }

  func open() { self.isOpen.update { $0 = true } }

  func fetch(_ refresh: CredentialsRefresh) async throws -> AccessToken {
    let number = self.state.withLock { state in
      state.reasons.append(refresh.reason)
      state.previous.append(refresh.previous?.value)
      state.refreshTokens.append(refresh.previous?.refreshToken)
      return state.reasons.count
    }
    _ = await self.isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
    if Task.isCancelled { self.state.withLock { $0.cancelled += 1 } }
    if let error = self.error?(number) { throw error }
    return Self.token(number, expiresIn: self.lifetime)
  }
}

/// A server in memory that accepts some tokens, a client of it with credentials, and virtual time.
struct TokenScene: Sendable {
  let executor: VirtualExecutor
  let transport: InMemoryTransport
  let credentials: Credentials
  let client: ProtocolClient
  /// What the server accepts in `authorization`; nil for whatever it is.
  let accepted = Observed<Set<String>?>(nil)
  /// The values of `authorization` in the order of the requests.
  let seen = Observed<[String?]>([])

  init(
    _ provider: TokenProvider,
    executor: VirtualExecutor = VirtualExecutor(),
    host: String = "https://api.test",
    hosts: [String] = ["api.test"],
    token: AccessToken? = nil,
    store: (any CredentialStore)? = nil,
    logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
    configuration: Credentials.Configuration = .defaults,
    networkProtocol: NetworkProtocol = .connect,
    retries: ProtocolClientConfig.Retries = .defaults
  ) {
    self.executor = executor
    self.transport = InMemoryTransport(executor: executor)
    let credentials = Credentials(
      for: hosts,
      token: token,
      store: store,
      configuration: configuration,
      clock: self.executor.clock,
      wallClock: Self.wallClock(executor),
      logger: logger
    ) { try await provider.fetch($0) }
    self.credentials = credentials
    self.client = ProtocolClient(
      httpClient: self.transport,
      config: ProtocolClientConfig(
        host: host,
        networkProtocol: networkProtocol,
        interceptors: [{ _ in CredentialsInterceptor(credentials) }],
        retries: retries
      )
    )
    let check: @Sendable (ServerContext) throws -> Void = { [accepted, seen] context in
      let value = context.requestHeaders.first("authorization")
      seen.update { $0.append(value) }
      if let accepted = accepted.value, !accepted.contains(value ?? "") {
        throw ConnectError(code: .unauthenticated, message: "who are you?")
      }
    }
    self.transport.onUnary(TestMethods.echo) { request, context in
      try check(context)
      return .with { $0.payload = request.payload }
    }
    self.transport.onServerStream(TestMethods.count) { request, responses, context in
      try check(context)
      try await responses.send(.with { $0.number = request.from })
    }
    self.transport.onBidirectionalStream(TestMethods.converse) { requests, responses, context in
      try check(context)
      for try await request in requests { try await responses.send(.with { $0.payload = request.payload }) }
    }
  }

  /// The time of day: virtual time passes from a second in the year 2023 on.
  static func wallClock(_ executor: VirtualExecutor) -> WallClock {
    WallClock { .seconds(1_700_000_000) + executor.now }
  }

  func echo(_ text: String = "hello", options: CallOptions = CallOptions()) async -> ResponseMessage<
    Connect_Test_V1_EchoResponse
  > {
    await self.client.unary(TestMethods.echo, .with { $0.payload.text = text }, options: options)
  }

  /// Starts calls that a test then lets go on.
  func startEchoes(_ count: Int, options: CallOptions = CallOptions()) -> EchoCalls {
    let calls = EchoCalls()
    for index in 0..<count {
      let handle = self.client.unary(
        TestMethods.echo,
        .with { $0.payload.small = Int32(index) },
        options: options
      ) { response in calls.outcomes.update { $0[index, default: []].append(response) } }
      calls.handles.withLock { $0.append(handle) }
    }
    self.executor.runUntilIdle()
    return calls
  }
}

/// Calls under way.
final class EchoCalls: Sendable {
  /// By the call's number: one for each, if all is well.
  let outcomes = Observed<[Int: [ResponseMessage<Connect_Test_V1_EchoResponse>]]>([:])
  let handles = Mutex<[CallHandle]>([])

  func cancel(_ index: Int) {
    self.handles.withLock { $0[index] }.cancel()
  }

  /// Waits for so many outcomes.
  func wait(for count: Int) async -> [ResponseMessage<Connect_Test_V1_EchoResponse>] {
    _ = await self.outcomes.wait(within: .seconds(60)) { $0.count >= count ? true : nil }
    return self.outcomes.value.sorted { $0.key < $1.key }.flatMap(\.value)
  }
}
