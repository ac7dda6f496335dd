internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import XCTest

/// Servers that renew connections as a matter of course: no call fails, and calls do not wait for a backoff. The client has
/// the default backoff of a second.
final class FleetRenewalTests: XCTestCase {
  private struct Shape: CustomStringConvertible {
    var callers: Int
    var policy: BalancingPolicy
    var networkProtocol: NetworkProtocol

    var description: String { "\(self.networkProtocol), \(self.policy), \(self.callers) in flight" }

    static var all: [Shape] {
      [1, 8, 32].flatMap { callers in
        [BalancingPolicy.pickFirst, .roundRobin].flatMap { policy in
          [NetworkProtocol.grpc, .connect].map {
            Shape(callers: callers, policy: policy, networkProtocol: $0)
          }
        }
      }
    }
  }

  /// What so many calls took.
  private func run(
    _ shape: Shape,
    _ addresses: [String],
    calls: Int,
    timeout: Duration? = nil
  ) async throws -> (time: Duration, tally: FleetTally) {
    try await FleetClient.run(
      addresses,
      shape.policy,
      networkProtocol: shape.networkProtocol,
      configure: { $0.channel.backoff = .defaults }
    ) { fleetClient in
      let client = fleetClient.client
      let start = ContinuousClock.now
      let tally = await withTaskGroup(of: FleetTally.self) { group in
        for _ in 0..<shape.callers {
          group.addTask {
            var tally = FleetTally()
            for _ in 0..<(calls / shape.callers) {
              let options = CallOptions(timeout: timeout)
              tally.add(await client.unary(TestMethods.echo, EchoRequest(), options: options))
            }
            return tally
          }
        }
        var sum = FleetTally()
        for await tally in group { sum.add(tally) }
        return sum
      }
      return (ContinuousClock.now - start, tally)
    }
  }

  /// nginx renews a connection after 1,000 requests by default. After 10, each connection serves fewer calls than are in
  /// flight.
  func testNginx() async throws {
    for (requests, calls) in [("10", 640), (nil, 9_600)] {
      let renewing = try await PythonServer.start(
        .nginx,
        arguments: ["canned"] + (requests.map { [$0] } ?? [])
      )
      let lasting = try await PythonServer.start(.nginx, arguments: ["canned", "1000000000"])
      for shape in Shape.all {
        // A backoff takes a second: this bounds the time of any call that waited for one.
        let renewed = try await self.run(
          shape,
          ["127.0.0.1:\(renewing.port("http"))"],
          calls: calls,
          timeout: .milliseconds(800)
        )
        let base = try await self.run(shape, ["127.0.0.1:\(lasting.port("http"))"], calls: calls)
        FleetReport.line(
          "nginx renews after \(requests ?? "1,000") requests; \(shape)",
          renewed.tally,
          String(format: "%.2f of the calls of the same server without renewal", base.time / renewed.time)
        )
        // Far from what is measured on a quiet machine, and far above what it was with a backoff: 0.03.
        XCTAssertGreaterThan(base.time / renewed.time, requests == nil ? 0.35 : 0.1, "\(shape)")
        renewed.tally.expectNoFailures()
        base.tally.expectNoFailures()
        XCTAssertEqual(renewed.tally.callCount, calls / shape.callers * shape.callers)
      }
      await renewing.stop()
      await lasting.stop()
    }
  }

  func testEnvoy() async throws {
    let fleet = try await Fleet.shared()
    let backend = try await fleet.start("127.0.0.2")
    for renewal in ["max_requests_per_connection=50", "max_connection_duration=0.3s"] {
      let envoy = try await PythonServer.start(.envoy, arguments: [renewal, backend])
      for shape in Shape.all where shape.callers > 1 {
        let result = try await self.run(
          shape,
          ["127.0.0.1:\(envoy.port("http"))"],
          calls: 800,
          timeout: .seconds(10)
        )
        FleetReport.line("Envoy renews, \(renewal); \(shape)", result.tally, "\(result.time)")
        result.tally.expectNoFailures()
      }
      await envoy.stop()
    }
    try await fleet.stop([backend])
  }

  func testGRPCIO() async throws {
    let fleet = try await Fleet.shared()
    let address = try await fleet.start("127.0.0.3", age: 200)
    for shape in Shape.all where shape.networkProtocol == .grpc && shape.callers > 1 {
      let result = try await self.run(shape, [address], calls: 1_600, timeout: .seconds(10))
      FleetReport.line("grpcio renews every 0.2 s; \(shape)", result.tally, "\(result.time)")
      result.tally.expectNoFailures()
    }
    try await fleet.stop([address])
  }
}
