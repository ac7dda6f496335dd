import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// Delays and failures that routes give to calls on purpose.
final class FaultInjectionTests: XCTestCase {
  private let all: UInt32 = 1_000_000

  private final class Codes: Sendable {
    private let codes = Mutex<[Code]>([])
    var all: [Code] { self.codes.withLock { $0 } }
    func append(_ code: Code) { self.codes.withLock { $0.append(code) } }
  }

  // MARK: Decisions

  private func decide(
    _ fault: FaultInjection,
    _ headers: Headers = [:],
    seed: UInt64 = 1
  ) -> (delay: Duration?, code: Code?)? {
    var random = SeededRandom(seed: seed)
    return fault.decide(headers, &random).map { ($0.delay, $0.error?.code) }
  }

  private func shares(_ fault: FaultInjection, _ headers: Headers = [:]) -> (delays: Double, aborts: Double) {
    let count = 50_000
    var (delays, aborts) = (0, 0)
    var seeds = SeededRandom(seed: 4)
    for _ in 0..<count {
      let decided = self.decide(fault, headers, seed: seeds.next())
      if decided?.delay != nil { delays += 1 }
      if decided?.code != nil { aborts += 1 }
    }
    return (Double(delays) / Double(count), Double(aborts) / Double(count))
  }

  func testSharesAreIndependent() {
    let fault = FaultInjection(
      delay: .init(.fixed(.seconds(1)), perMillion: 250_000),
      abort: .init(.fixed(.aborted), perMillion: 500_000)
    )
    let shares = self.shares(fault)
    XCTAssertEqual(shares.delays, 0.25, accuracy: 0.01)
    XCTAssertEqual(shares.aborts, 0.5, accuracy: 0.01)
    let none = FaultInjection(abort: .init(.fixed(.aborted), perMillion: 0))
    XCTAssertEqual(self.shares(none).aborts, 0)
    let every = FaultInjection(abort: .init(.fixed(.aborted), perMillion: self.all))
    XCTAssertEqual(self.shares(every).aborts, 1)
  }

  func testHeadersThatSayWhatHappens() {
    let fault = FaultInjection(
      delay: .init(.header, perMillion: self.all),
      abort: .init(.header, perMillion: self.all)
    )
    let cases: [(Headers, Duration?, Code?)] = [
      ([:], nil, nil),
      (["x-envoy-fault-delay-request": ["250"]], .milliseconds(250), nil),
      (["x-envoy-fault-delay-request": ["0"]], nil, nil),
      (["x-envoy-fault-delay-request": ["-5"]], nil, nil),
      (["x-envoy-fault-delay-request": ["soon"]], nil, nil),
      (["x-envoy-fault-abort-grpc-request": ["5"]], nil, .notFound),
      (["x-envoy-fault-abort-grpc-request": ["0"]], nil, nil),
      (["x-envoy-fault-abort-grpc-request": ["99"]], nil, .unknown),
      (["x-envoy-fault-abort-grpc-request": ["x"]], nil, nil),
      (["x-envoy-fault-abort-request": ["503"]], nil, .unavailable),
      (["x-envoy-fault-abort-request": ["404"]], nil, .unimplemented),
      (["x-envoy-fault-abort-request": ["418"]], nil, .unknown),
      (["x-envoy-fault-abort-request": ["503"], "x-envoy-fault-abort-grpc-request": ["5"]], nil, .notFound),
      (
        ["x-envoy-fault-delay-request": ["1"], "x-envoy-fault-abort-grpc-request": ["14"]], .milliseconds(1),
        .unavailable
      ),
    ]
    for (headers, delay, code) in cases {
      let decided = self.decide(fault, headers)
      XCTAssertEqual(decided?.delay, delay, "\(headers)")
      XCTAssertEqual(decided?.code, code, "\(headers)")
      XCTAssertEqual(decided == nil, delay == nil && code == nil, "\(headers)")
    }
  }

  func testHeadersLowerTheShare() {
    let fault = FaultInjection(
      delay: .init(.header, perMillion: 500_000),
      abort: .init(.header, perMillion: 500_000, headerUnit: 100)
    )
    var headers: Headers = ["x-envoy-fault-delay-request": ["1"], "x-envoy-fault-abort-grpc-request": ["5"]]
    headers["x-envoy-fault-delay-request-percentage"] = ["20"]
    headers["x-envoy-fault-abort-percentage"] = ["1000"]
    var shares = self.shares(fault, headers)
    XCTAssertEqual(shares.delays, 0.2, accuracy: 0.01)
    XCTAssertEqual(shares.aborts, 0.1, accuracy: 0.01)
    // They cannot raise it.
    headers["x-envoy-fault-delay-request-percentage"] = ["100"]
    headers["x-envoy-fault-abort-percentage"] = ["9223372036854775807"]
    shares = self.shares(fault, headers)
    XCTAssertEqual(shares.delays, 0.5, accuracy: 0.01)
    XCTAssertEqual(shares.aborts, 0.5, accuracy: 0.01)
    headers["x-envoy-fault-delay-request-percentage"] = ["-1"]
    XCTAssertEqual(self.shares(fault, headers).delays, 0)
    // The name of Envoy goes first. Fixed faults look at no header.
    headers["x-envoy-fault-abort-request-percentage"] = ["0"]
    XCTAssertEqual(self.shares(fault, headers).aborts, 0)
    let fixed = FaultInjection(abort: .init(.fixed(.aborted), perMillion: self.all))
    XCTAssertEqual(self.shares(fixed, headers).aborts, 1)
  }

  // MARK: Calls

  private func fleet(_ fault: FaultInjection?, of cluster: FaultInjection? = nil, timeout: Duration? = nil)
    -> FakeFleet
  {
    let fleet = FakeFleet()
    fleet.network.answer = { $0.answer() }
    let share = WeightedCluster(name: "a", weight: 1, fault: cluster)
    fleet.route([Route(to: [share], timeout: timeout, fault: fault)], ["a": Cluster("10.0.0.1:80")])
    return fleet
  }

  private func delay(_ duration: Duration, then code: Code? = nil, maximumActive: UInt32? = nil)
    -> FaultInjection
  {
    FaultInjection(
      delay: .init(.fixed(duration), perMillion: self.all),
      abort: code.map { .init(.fixed($0), perMillion: self.all) },
      maximumActive: maximumActive
    )
  }

  private func abort(_ code: Code) -> FaultInjection {
    FaultInjection(abort: .init(.fixed(code), perMillion: self.all))
  }

  func testAbort() {
    let fleet = self.fleet(self.abort(.notFound))
    for waits in [false, true] {
      let response = RoutedCall(fleet, waitForReady: waits).response
      XCTAssertEqual(response?.code, .notFound)
      XCTAssertTrue(response?.error?.message?.hasPrefix("Fault injected") == true)
      XCTAssertEqual(response?.error?.isFinal, true)
    }
    XCTAssertEqual(fleet.network.requests.count, 0)
    XCTAssertEqual(fleet.network.attempts, [], "nothing is sent")
  }

  func testDelay() {
    let fleet = self.fleet(self.delay(.seconds(3)))
    let call = RoutedCall(fleet)
    fleet.advance(by: .milliseconds(2_999))
    XCTAssertEqual(fleet.network.attempts, [])
    fleet.advance(by: .milliseconds(1))
    XCTAssertTrue(call.hasSucceeded)
  }

  func testDelayAndAbort() {
    let fleet = self.fleet(self.delay(.seconds(3), then: .resourceExhausted))
    let call = RoutedCall(fleet)
    fleet.advance(by: .milliseconds(2_999))
    XCTAssertNil(call.response)
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(call.response?.code, .resourceExhausted)
    XCTAssertEqual(fleet.network.attempts, [])
  }

  func testTheDeadlineCounts() {
    let fleet = self.fleet(self.delay(.seconds(3)), timeout: .seconds(2))
    let call = RoutedCall(fleet)
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(call.response?.code, .deadlineExceeded)
    fleet.advance(by: .seconds(5))
    XCTAssertEqual(fleet.network.attempts, [])
    // What is left of it goes on the wire.
    let other = self.fleet(self.delay(.seconds(3)), timeout: .seconds(10))
    let long = RoutedCall(other)
    other.advance(by: .seconds(3))
    XCTAssertTrue(long.hasSucceeded)
    XCTAssertEqual(other.network.requests.first?.headers.first("connect-timeout-ms"), "7000")
  }

  func testCancellationDuringTheDelay() {
    let fleet = self.fleet(self.delay(.seconds(3), maximumActive: 1))
    let call = RoutedCall(fleet)
    call.cancel()
    XCTAssertEqual(call.response?.code, .canceled)
    // It has given its place back.
    let next = RoutedCall(fleet)
    XCTAssertNil(next.response)
    fleet.advance(by: .seconds(3))
    XCTAssertTrue(next.hasSucceeded)
    XCTAssertEqual(fleet.network.requests.count, 1)
  }

  /// A call counts while it is delayed; without a place it gets neither a delay nor a failure.
  func testTheMaximumOfActiveFaults() {
    let fleet = self.fleet(self.delay(.seconds(3), then: .aborted, maximumActive: 2))
    let delayed = (0..<2).map { _ in RoutedCall(fleet) }
    XCTAssertTrue(RoutedCall(fleet).hasSucceeded)
    XCTAssertTrue(delayed.allSatisfy { $0.response == nil })
    fleet.advance(by: .seconds(3))
    XCTAssertEqual(delayed.map { $0.response?.code }, [.aborted, .aborted])
    XCTAssertNil(RoutedCall(fleet).response, "there is room again")
    fleet.advance(by: .seconds(3))
    let none = self.fleet(
      FaultInjection(abort: .init(.fixed(.aborted), perMillion: self.all), maximumActive: 0)
    )
    XCTAssertTrue(RoutedCall(none).hasSucceeded)
  }

  /// The faults of a route's cluster are in place of those of the route.
  func testFaultsOfClusters() {
    let own = RoutedCall(self.fleet(self.abort(.notFound), of: self.abort(.dataLoss)))
    XCTAssertEqual(own.response?.code, .dataLoss)
    XCTAssertTrue(RoutedCall(self.fleet(self.abort(.notFound), of: FaultInjection())).hasSucceeded)
    XCTAssertTrue(RoutedCall(self.fleet(nil)).hasSucceeded)
  }

  /// Interceptors are told of the end, and those that retry do not.
  func testInterceptors() {
    let outcomes = Codes()
    struct Recorder: Interceptor {
      let record: @Sendable (CallOutcome) -> Void
      func callFunction(_ method: MethodInfo) -> CallFunction { CallFunction(endFunction: self.record) }
    }
    let fleet = self.fleet(self.abort(.unavailable))
    let record: @Sendable (CallOutcome) -> Void = { outcome in
      outcomes.append(outcome.code)
    }
    let call = RoutedCall(fleet, interceptors: [{ _ in Recorder(record: record) }])
    XCTAssertEqual(call.response?.code, .unavailable)
    XCTAssertEqual(outcomes.all, [.unavailable])
  }

  /// A transport's own call has no faults, and goes where the route leads.
  func testCallsOfTheTransport() {
    let fleet = self.fleet(self.abort(.notFound))
    fleet.network.answer = { $0.end() }
    XCTAssertTrue(fleet.call().hasEnded)
  }

  func testStreamsOfAllProtocols() {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let fleet = self.fleet(self.delay(.seconds(3), then: .outOfRange))
      let client = ProtocolClient(
        httpClient: ChannelTransport(channel: fleet.channel),
        config: ProtocolClientConfig(
          host: "http://fleet.test",
          networkProtocol: networkProtocol,
          codec: JSONCodec()
        )
      )
      let ends = Codes()
      let method = MethodSpec<Int, Int>(codablePath: "/pkg.Service/Watch", streamType: .serverStream)
      let handle = client.serverStream(method, 1) { result in
        if case .complete(let code, _, _) = result { ends.append(code) }
      }
      fleet.executor.runUntilIdle()
      fleet.advance(by: .seconds(2))
      XCTAssertEqual(ends.all, [])
      fleet.advance(by: .seconds(1))
      XCTAssertEqual(ends.all, [.outOfRange], "\(networkProtocol)")
      XCTAssertEqual(fleet.network.attempts, [])
      withExtendedLifetime(handle) {}
    }
  }
}
