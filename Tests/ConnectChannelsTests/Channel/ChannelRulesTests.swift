import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

@testable import ConnectChannels

/// What a channel's service config does to calls.
final class ChannelRulesTests: XCTestCase {
  private let a = "10.0.0.1:80"

  private static func timeout(_ seconds: Int) -> String {
    #"{"methodConfig":[{"name":[{"service":"pkg.Service","method":"Get"}],"timeout":"\#(seconds)s"}]}"#
  }

  private static func config(_ seconds: Int) throws -> ServiceConfig {
    try ServiceConfig(json: self.timeout(seconds))
  }

  // MARK: Where rules come from

  func testRulesOfTheProgram() throws {
    let config = try Self.config(5)
    let fleet = FakeFleet {
      $0.serviceConfig = config
      $0.resolver = StaticResolver([Endpoint("10.0.0.1:80")].compactMap { $0 })
    }
    let call = RuledCall(fleet)
    XCTAssertEqual(call.timeouts, ["5000"])
    fleet.advance(by: .seconds(5))
    XCTAssertEqual(call.response?.code, .deadlineExceeded)
  }

  func testRulesOfTheResolver() {
    let fleet = FakeFleet()
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    let first = RuledCall(fleet)
    XCTAssertEqual(first.timeouts, [], "it waits")
    XCTAssertEqual(fleet.channel.connectivity, .connecting, "the call wakes the channel")
    fleet.advance(by: .seconds(1))
    fleet.resolve([self.a], serviceConfig: Self.timeout(5))
    XCTAssertEqual(first.timeouts, ["4000"])
    // Another one holds for the calls that follow.
    fleet.resolve([self.a], serviceConfig: Self.timeout(7))
    XCTAssertEqual(RuledCall(fleet).timeouts, ["4000", "7000"])
    // An invalid one does not.
    fleet.resolve([self.a], serviceConfig: #"{"methodConfig":[{"timeout":"soon"}]}"#)
    XCTAssertEqual(RuledCall(fleet).timeouts, ["4000", "7000", "7000"])
    fleet.resolve([self.a], serviceConfig: "{}")
    XCTAssertEqual(RuledCall(fleet).timeouts, ["4000", "7000", "7000", nil])
  }

  func testRulesOfTheProgramCountUntilTheResolverHasSome() throws {
    let config = try Self.config(5)
    let fleet = FakeFleet { $0.serviceConfig = config }
    _ = RuledCall(fleet)
    fleet.resolve([self.a])
    fleet.resolve([self.a], serviceConfig: Self.timeout(7))
    _ = RuledCall(fleet)
    fleet.resolve([self.a])
    XCTAssertEqual(RuledCall(fleet).timeouts, ["5000", "7000", "5000"])
  }

  func testAnInvalidFirstOneLeavesThoseOfTheProgram() throws {
    let config = try Self.config(5)
    let fleet = FakeFleet { $0.serviceConfig = config }
    let call = RuledCall(fleet)
    fleet.resolve([self.a], serviceConfig: "[]")
    XCTAssertEqual(call.timeouts, ["5000"])
  }

  // MARK: Calls that wait for rules

  func testAFailedResolutionEndsTheWait() throws {
    for isTimedOut in [true, false] {
      let fleet = FakeFleet()
      let call = RuledCall(fleet)
      let patient = RuledCall(fleet, CallOptions(waitForReady: true))
      if isTimedOut {
        fleet.advance(by: .seconds(20))
      } else {
        fleet.resolver.fail(ConnectError(code: .unavailable, message: "no such name"))
        fleet.executor.runUntilIdle()
      }
      XCTAssertEqual(call.response?.code, .unavailable)
      XCTAssertTrue(
        call.response?.error?.message?.contains(isTimedOut ? "timed out" : "no such name") == true
      )
      XCTAssertNil(patient.response)
      XCTAssertEqual(RuledCall(fleet).response?.code, .unavailable, "at once")
      fleet.resolve([self.a], serviceConfig: Self.timeout(60))
      XCTAssertEqual(patient.timeouts.count, 1)
      XCTAssertNotNil(patient.timeouts[0])
    }
  }

  func testDeadlineAndCancellationEndTheWait() {
    let fleet = FakeFleet()
    let late = RuledCall(fleet, CallOptions(timeout: .seconds(1)))
    let cancelled = RuledCall(fleet)
    cancelled.cancel()
    XCTAssertEqual(cancelled.response?.code, .canceled)
    XCTAssertNil(late.response)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(late.response?.code, .deadlineExceeded)
    fleet.resolve([self.a])
    XCTAssertEqual(late.timeouts, [])
  }

  func testResolversWithoutServiceConfigLetNobodyWait() {
    let seen = Atomic(0)
    let fleet = FakeFleet { $0.resolver = SilentResolver(mayBringServiceConfig: false) }
    _ = RuledCall(fleet) { seen.add(1, ordering: .relaxed) }
    XCTAssertEqual(seen.load(ordering: .relaxed), 1)
    let other = FakeFleet { $0.resolver = SilentResolver(mayBringServiceConfig: true) }
    let call = RuledCall(other) { seen.add(1, ordering: .relaxed) }
    XCTAssertEqual(seen.load(ordering: .relaxed), 1, "hooks run once the rules are known")
    call.cancel()
  }

  func testResolversOfThisModule() {
    let endpoints = [Endpoint("10.0.0.1:80")].compactMap { $0 }
    XCTAssertFalse(StaticResolver(endpoints).mayBringServiceConfig)
    XCTAssertTrue(StaticResolver(endpoints, serviceConfig: "{}").mayBringServiceConfig)
    XCTAssertTrue(PushResolver().mayBringServiceConfig)
    XCTAssertTrue(PollingResolver { _, _, _ in }.mayBringServiceConfig)
  }

  func testNoMoreMayWaitThanForConnections() {
    let fleet = FakeFleet(limits: ConnectionLimits(waitingCalls: 0))
    let calls = (0..<100).map { _ in RuledCall(fleet) }
    XCTAssertTrue(calls.allSatisfy { $0.response == nil })
    let more = RuledCall(fleet)
    XCTAssertEqual(more.response?.code, .resourceExhausted)
    XCTAssertEqual(
      more.response?.error?.message,
      """
      100 calls already wait for a connection to \(fleet.channel.origin.description), 100 of them for one that is being \
      opened: waitingCalls is 0, which is the limit; see NIOHTTPClient.Configuration.Limits.waitingCalls
      """
    )
    fleet.resolve([self.a])
    XCTAssertEqual(fleet.network.counts, [self.a: 100])
  }

  /// Whoever waits needs the resolver.
  func testAChannelWithCallsThatWaitIsNotIdle() async {
    let fleet = FakeFleet { $0.idleTimeout = .seconds(1) }
    let call = RuledCall(fleet)
    fleet.advance(by: .seconds(10))
    async let snapshot = fleet.channel.snapshot()
    let waitingCalls = await snapshot.waitingCalls
    XCTAssertEqual(waitingCalls, 1)
    XCTAssertEqual(fleet.channel.connectivity, .connecting)
    fleet.resolve([self.a])
    XCTAssertEqual(call.timeouts, [nil])
  }

  /// What it knew may be out of date then.
  func testAChannelThatWasIdleAsksForRulesAgain() {
    let fleet = FakeFleet { $0.idleTimeout = .seconds(100) }
    fleet.network.answer = RuledCall.answer
    fleet.resolve([self.a], serviceConfig: Self.timeout(5))
    XCTAssertEqual(RuledCall(fleet).response?.message, 1)
    fleet.advance(by: .seconds(300))
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    fleet.resolve([self.a], serviceConfig: Self.timeout(7))
    let call = RuledCall(fleet)
    XCTAssertEqual(call.response?.message, 1)
    XCTAssertEqual(call.timeouts, ["5000", "7000"])
  }

  func testShutdownLetsCallsThatWaitFinish() {
    let fleet = FakeFleet()
    fleet.network.answer = RuledCall.answer
    let call = RuledCall(fleet)
    let isDone = Atomic(false)
    fleet.channel.shutDown(within: .seconds(10)) { isDone.store(true, ordering: .relaxed) }
    fleet.executor.runUntilIdle()
    XCTAssertNil(call.response)
    XCTAssertEqual(RuledCall(fleet).response?.error?.message, ConnectError.clientShutDown.message)
    fleet.resolve([self.a])
    XCTAssertEqual(call.response?.message, 1)
    XCTAssertTrue(isDone.load(ordering: .relaxed))
  }

  // MARK: Rules of all kinds

  func testSizesAndWaitForReady() {
    let fleet = FakeFleet()
    fleet.network.standard = .refuses
    fleet.resolve(
      [self.a],
      serviceConfig: """
        { "methodConfig": [
          { "name": [{ "service": "pkg.Service" }], "waitForReady": true, "maxRequestMessageBytes": 3,
            "maxResponseMessageBytes": "2" }
        ] }
        """
    )
    XCTAssertEqual(RuledCall(fleet, message: 1_000).response?.code, .resourceExhausted)
    let small = RuledCall(fleet, message: 100)
    let impatient = RuledCall(fleet, CallOptions(waitForReady: false))
    XCTAssertEqual(impatient.response?.code, .unavailable)
    XCTAssertNil(small.response)
    fleet.network.standard = .accepts()
    fleet.network.answer = { stream in
      stream.respond(["content-type": ["application/json"]], bytes: ByteBuffer(string: "123"))
      stream.end([:])
    }
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(small.response?.code, .resourceExhausted)
    XCTAssertTrue(small.response?.error?.message?.contains("limit of 2 bytes") == true)
  }

  func testHedgesAreThrottled() {
    let fleet = FakeFleet()
    fleet.resolve(
      [self.a],
      serviceConfig: """
        { "methodConfig": [
            { "name": [{}],
              "hedgingPolicy": { "maxAttempts": 4, "hedgingDelay": "1s", "nonFatalStatusCodes": ["ABORTED"] } }
          ],
          "retryThrottling": { "maxTokens": 2, "tokenRatio": 1 } }
        """
    )
    let call = RuledCall(fleet)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(call.timeouts.count, 2)
    fleet.run { fleet.network.connections.first?.streams.first?.abort() }
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(call.timeouts.count, 2, "half of the tokens are left")
    fleet.run { fleet.network.connections.first?.streams.first?.answer() }
    XCTAssertEqual(call.response?.message, 1)
    let next = RuledCall(fleet)
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(next.timeouts.count, 2 + 4, "a success has brought a token")
  }

  func testTheThrottleStaysAsLongAsItsNumbersDo() throws {
    func json(_ tokens: Int, _ timeout: Int) -> String {
      #"{"methodConfig":[{"name":[{}],"timeout":"\#(timeout)s"}],"retryThrottling":{"maxTokens":\#(tokens),"tokenRatio":1}}"#
    }
    let config = try ServiceConfig(json: json(8, 1))
    let fleet = FakeFleet { $0.serviceConfig = config }
    let throttle = try XCTUnwrap(fleet.channel.rules.throttle)
    _ = throttle.recordFailure()
    _ = fleet.call()
    fleet.resolve([self.a], serviceConfig: json(8, 2))
    XCTAssertTrue(fleet.channel.rules.throttle === throttle)
    XCTAssertEqual([throttle.recordFailure(), throttle.recordFailure()], [true, true])
    XCTAssertFalse(throttle.recordFailure(), "four of eight are left")
    fleet.resolve([self.a], serviceConfig: json(9, 2))
    XCTAssertEqual(fleet.channel.rules.throttle?.allowsRetry, true)
    fleet.resolve([self.a], serviceConfig: "{}")
    XCTAssertNil(fleet.channel.rules.throttle)
  }

  /// A program may build what JSON cannot say.
  func testExtremeNumbers() {
    for duration in [Duration.seconds(Int64.min), .seconds(-1), .zero, .seconds(Int64.max)] {
      for number in [Int.min, -1, 0, Int.max] {
        let retry = MethodConfig.RetryPolicy(
          maximumAttempts: number,
          initialBackoff: duration,
          maximumBackoff: duration,
          backoffMultiplier: .nan,
          retryableCodes: []
        )
        let hedging = MethodConfig.HedgingPolicy(maximumAttempts: number, hedgingDelay: duration)
        for attempts in [MethodConfig.AttemptPolicy.retry(retry), .hedging(hedging)] {
          let config = MethodConfig(
            names: [.init()],
            timeout: duration,
            maximumRequestMessageSize: number,
            maximumResponseMessageSize: number,
            attempts: attempts
          )
          let fleet = FakeFleet([self.a]) {
            $0.serviceConfig = ServiceConfig(
              methods: [config],
              retryThrottling: .init(maximumTokens: number, tokenRatio: .nan),
              maximumConnectionsPerSubchannel: number
            )
          }
          fleet.network.answer = RuledCall.answer
          XCTAssertNotNil(RuledCall(fleet).response)
        }
      }
    }
  }

  // MARK: Connections

  private static func connections(_ count: Int) -> String {
    #"{"connectionScaling":{"maxConnectionsPerSubchannel":\#(count)}}"#
  }

  /// gRFC A105: at most 10, and never fewer than the transport's own limit.
  func testConnectionsForEachEndpoint() {
    for (own, wanted, expected) in [(4, 6, 6), (4, 2, 4), (4, 11, 10), (12, 11, 12), (4, nil, 4)]
      as [(Int, Int?, Int)]
    {
      let fleet = FakeFleet(limits: ConnectionLimits(http2Connections: own))
      fleet.network.standard = .accepts(streams: 1)
      fleet.resolve([self.a], serviceConfig: wanted.map(Self.connections))
      for _ in 0..<20 { fleet.call() }
      XCTAssertEqual(fleet.network.connections.count, expected)
    }
  }

  func testPoolsThatExistGetTheLimit() {
    let fleet = FakeFleet(limits: ConnectionLimits(http2Connections: 1))
    fleet.network.standard = .accepts(streams: 1)
    fleet.resolve([self.a])
    let calls = (0..<4).map { _ in fleet.call() }
    XCTAssertEqual(fleet.network.connections.count, 1)
    fleet.resolve([self.a], serviceConfig: Self.connections(3))
    XCTAssertEqual(fleet.network.connections.count, 3, "for the calls that wait")
    fleet.resolve([self.a])
    XCTAssertEqual(fleet.network.open(at: self.a).count, 3, "they finish what they have")
    for _ in 0..<4 {
      fleet.run { for connection in fleet.network.connections { connection.streams.first?.end() } }
    }
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
    XCTAssertEqual(fleet.network.connections.count, 3)
  }
}

/// A call of a `ProtocolClient` through a ``FakeFleet``'s channel.
final class RuledCall {
  private struct HookInterceptor: Interceptor {
    let onRequest: @Sendable () -> Void

    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(requestFunction: { _ in self.onRequest() })
    }
  }

  static func answer(_ stream: FakeStream) { stream.answer() }

  private let fleet: FakeFleet
  private let handle: CallHandle
  private let outcome = Outcome()

  private final class Outcome: Sendable {
    let response = Mutex<ResponseMessage<Int>?>(nil)
  }

  /// Starts it and lets happen what does not take time. Its host has a base path.
  init(
    _ fleet: FakeFleet,
    _ options: CallOptions = CallOptions(),
    message: Int = 1,
    onRequest: (@Sendable () -> Void)? = nil
  ) {
    var config = ProtocolClientConfig(host: "http://fleet.test/base/path", codec: JSONCodec())
    if let onRequest { config.interceptors = [{ _ in HookInterceptor(onRequest: onRequest) }] }
    let client = ProtocolClient(httpClient: ChannelTransport(channel: fleet.channel), config: config)
    self.fleet = fleet
    let method = MethodSpec<Int, Int>(codablePath: "/pkg.Service/Get", streamType: .unary)
    self.handle = client.unary(method, message, options: options) { [outcome] response in
      outcome.response.withLock { $0 = response }
    }
    fleet.executor.runUntilIdle()
  }

  /// Nil while the call goes on.
  var response: ResponseMessage<Int>? { self.outcome.response.withLock { $0 } }

  /// Those that the requests of the channel's connections had so far, also of calls that are over, in milliseconds.
  var timeouts: [String?] { self.fleet.network.requests.map { $0.headers.first("connect-timeout-ms") } }

  func cancel() {
    self.handle.cancel()
    self.fleet.executor.runUntilIdle()
  }
}

/// Never answers.
private struct SilentResolver: NameResolver {
  let mayBringServiceConfig: Bool

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    Watch()
  }

  private final class Watch: ResolverWatch {
    func resolveAgain() {}
    func cancel() {}
  }
}

extension FakeStream {
  fileprivate func abort() {
    let body = ByteBuffer(string: #"{"code":"aborted"}"#)
    self.respond(["content-type": ["application/json"]], status: 409, bytes: body)
    self.end([:])
  }
}
