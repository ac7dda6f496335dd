internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
internal import XCTest

/// A service config that the resolver brings, and changes while calls go on.
final class FleetServiceConfigTests: XCTestCase {
  private static let retrying: InterceptorFactory = { _ in
    // Makes no attempts by itself.
    RetryInterceptor(policy: RetryPolicy(maximumAttempts: 1), budget: RetryBudget(maximumTokens: 1_000))
  }

  /// - Parameter rules: Fields of a method config.
  private static func json(_ rules: String) -> String {
    #"{"methodConfig":[{"name":[{"service":"connect.test.v1.TestService"}],\#(rules)}]}"#
  }

  private static let retryPolicy = """
    "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.01s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"] }
    """

  func testCallsFollowAServiceConfigThatChanges() async throws {
    let fleet = try await Fleet.shared()
    let addresses = try await fleet.start(2)
    try await FleetClient.run(addresses, interceptors: [Self.retrying]) { fleetClient in
      let endpoints = try FleetClient.endpoints(addresses)
      func update(_ rules: String) {
        fleetClient.resolver.update(endpoints, serviceConfig: Self.json(rules))
      }
      _ = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }

      // Retries.
      try await fleet.fail(addresses[0], 14)
      let before = await fleetClient.call(20)
      XCTAssertEqual(before.failures.count, 10)
      update(Self.retryPolicy)
      let retried = await fleetClient.call(100)
      XCTAssertEqual(retried[addresses[1]], 100, "\(retried.failures.first.map { "\($0)" } ?? "")")
      try await fleet.fail(addresses[0], 0)

      // Timeouts and sizes, while other calls go on.
      let load = FleetLoad(fleetClient.client, workers: 2)
      try await load.wait(for: 20)
      update(#""timeout": "2s""#)
      try await self.expectTimeout(fleetClient)
      // One that cannot be read changes nothing.
      update(#""timeout": "soon""#)
      try await fleetClient.log.wait(for: "expected a duration such as")
      try await self.expectTimeout(fleetClient)
      update(#""maxRequestMessageBytes": 50"#)
      let large = EchoRequest.with { $0.payload.text = String(repeating: "x", count: 50) }
      let refused = await fleetClient.client.unary(TestMethods.echo, large)
      ExpectedError(.resourceExhausted, "over the limit of 50 bytes").check(refused.error, "too large")
      try await load.wait(for: 20)
      let during = await load.stop()
      during.expectNoFailures()

      // Waiting for a server.
      update(#""waitForReady": true"#)
      let unlimited = await fleetClient.client.unary(TestMethods.echo, large)
      XCTAssertEqual(unlimited.code, .ok)
      try await fleet.stop(addresses)
      let unavailable = try await fleetClient.callUntilItFails(options: CallOptions(waitForReady: false))
      XCTAssertEqual(unavailable.code, .unavailable)
      let waiting = Recorder<ResponseMessage<EchoResponse>>()
      for _ in 0..<10 { fleetClient.client.unary(TestMethods.echo, EchoRequest()) { waiting.record($0) } }
      let impatient = await fleetClient.call(5, options: CallOptions(waitForReady: false))
      XCTAssertEqual(impatient.failures.map(\.code), Array(repeating: .unavailable, count: 5))
      XCTAssertEqual(waiting.values.count, 0)
      try await fleet.start(addresses[1])
      try await waiting.wait(for: 10, of: "calls that waited")
      for response in waiting.values { XCTAssertEqual(response.code, .ok, "\(response)") }
      FleetReport.line(
        "a service config that changes: retries of a failing server",
        retried,
        "\(during.callCount) calls while it changed, \(during.failures.count) failed"
      )
    }
    try await fleet.stop(addresses[1])
  }

  /// Held calls end after the two seconds of the service config.
  private func expectTimeout(_ fleetClient: FleetClient) async throws {
    let held = fleetClient.hold(1)
    let response = try await held.wait(for: 1, of: "held calls")[0].response
    let text = "within 2.0 seconds (the timeout of the service config)"
    ExpectedError(.deadlineExceeded, text).check(response.error, "held")
  }

  /// A call that begins before the resolver has answered follows what it then says.
  func testCallsWaitForTheResolversServiceConfig() async throws {
    let fleet = try await Fleet.shared()
    let address = try await fleet.start("127.0.0.2")
    let resolver = PushResolver()
    try await FleetClient.run([], configure: { $0.channel.resolver = resolver }) { fleetClient in
      let text = EchoRequest.with { $0.payload.text = "text" }
      let waiting = Recorder<ResponseMessage<EchoResponse>>()
      fleetClient.client.unary(TestMethods.echo, text) { waiting.record($0) }
      fleetClient.client.unary(TestMethods.echo, EchoRequest()) { waiting.record($0) }
      let late = await fleetClient.call(1, options: CallOptions(timeout: .milliseconds(50)))
      XCTAssertEqual(late.failures.map(\.code), [.deadlineExceeded])
      XCTAssertEqual(waiting.values.count, 0)
      let json = Self.json(#""maxRequestMessageBytes": 0"#)
      resolver.update(try FleetClient.endpoints([address]), serviceConfig: json)
      try await waiting.wait(for: 2, of: "calls that waited")
      XCTAssertEqual(Set(waiting.values.map(\.code)), [.ok, .resourceExhausted])
    }
    try await fleet.stop(address)
  }
}

extension FleetClient {
  fileprivate func callUntilItFails(options: CallOptions) async throws -> ConnectError {
    for _ in 0..<10_000 {
      if let error = await self.client.unary(TestMethods.echo, EchoRequest(), options: options).error {
        return error
      }
    }
    throw LoopbackServerError("no call fails")
  }
}
