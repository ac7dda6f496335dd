import Connect
import ConnectChannels
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import XCTest

/// Several servers in memory: the channel that finds them is the one that `NIOHTTPClient` has.
final class InMemoryFleetTests: XCTestCase {
  private let (a, b, c) = (MemoryFleet.names[0], MemoryFleet.names[1], MemoryFleet.names[2])
  private let addressB = MemoryFleet.addresses[1]

  // MARK: Several addresses

  func testRoundRobin() {
    for network in [NetworkProtocol.connect, .grpc] {
      let fleet = MemoryFleet(network: network)
      XCTAssertEqual(fleet.outcomes(of: 9), [self.a: 3, self.b: 3, self.c: 3])
      XCTAssertEqual(fleet.log.all, [self.a, self.b, self.c].map { "opened \($0)" })
    }
  }

  /// What is random in a channel is the same in each run.
  func testTheOrderIsTheSameInEachRun() {
    let runs = (0..<3).map { _ in
      let fleet = MemoryFleet(balancing: .leastRequest())
      return (0..<20).flatMap { _ in fleet.call().outcomes }
    }
    XCTAssertEqual(runs[0].count, 20)
    XCTAssertEqual(runs[0], runs[1])
    XCTAssertEqual(runs[0], runs[2])
  }

  func testWithoutAResolverThereIsOneServer() {
    let fleet = MemoryFleet { $0.resolver = nil }
    XCTAssertEqual(fleet.outcomes(of: 3), ["no address": 3])
    XCTAssertEqual(fleet.log.all, ["opened unix:memory"])
  }

  func testAResolverThatPushes() {
    let fleet = MemoryFleet([MemoryFleet.addresses[0]])
    XCTAssertEqual(fleet.outcomes(of: 4), [self.a: 4])
    fleet.resolve(Array(MemoryFleet.addresses[0...1]))
    XCTAssertEqual(fleet.outcomes(of: 4), [self.a: 2, self.b: 2])

    let slow = [fleet.call("slow"), fleet.call("slow")]
    fleet.resolve([MemoryFleet.addresses[2]])
    XCTAssertEqual(fleet.outcomes(of: 4), [self.c: 4])
    XCTAssertEqual(fleet.log.count("closed \(self.a)"), 0)
    fleet.advance(by: .seconds(5))
    XCTAssertEqual(Set(slow.flatMap(\.outcomes)), [self.a, self.b])
    XCTAssertEqual(fleet.log.count("closed \(self.a)"), 1)
    XCTAssertEqual(fleet.log.count("closed \(self.b)"), 1)
  }

  func testAServiceConfigChoosesThePolicy() {
    let fleet = MemoryFleet([], balancing: nil)
    fleet.resolve(MemoryFleet.addresses, serviceConfig: #"{"loadBalancingConfig": [{"round_robin": {}}]}"#)
    XCTAssertEqual(fleet.outcomes(of: 9), [self.a: 3, self.b: 3, self.c: 3])
  }

  // MARK: Servers that go and come

  func testOneRefusesConnectionsAndComesBack() {
    let fleet = MemoryFleet()
    fleet.transport.refuseConnections(at: self.addressB)
    XCTAssertEqual(fleet.outcomes(of: 10), [self.a: 5, self.c: 5])
    XCTAssertEqual(fleet.log.count("failed \(self.b)"), 1)

    // The backoff: 1 second, then 1.6 seconds, each within 20 %.
    fleet.advance(by: .milliseconds(790))
    XCTAssertEqual(fleet.log.count("failed \(self.b)"), 1)
    fleet.advance(by: .milliseconds(420))
    XCTAssertEqual(fleet.log.count("failed \(self.b)"), 2)
    fleet.transport.acceptConnections(at: self.addressB)
    XCTAssertEqual(fleet.outcomes(of: 10), [self.a: 5, self.c: 5])
    fleet.advance(by: .milliseconds(1_930))
    XCTAssertEqual(fleet.outcomes(of: 9), [self.a: 3, self.b: 3, self.c: 3])
    XCTAssertEqual(fleet.executor.scheduled, [])
  }

  func testOneGoesAwayWithCallsUnderWay() {
    let fleet = MemoryFleet()
    XCTAssertEqual(fleet.outcomes(of: 3).count, 3)
    let slow = (0..<3).map { _ in fleet.call("slow") }
    fleet.transport.refuseConnections(at: self.addressB)
    fleet.transport.goAway(at: self.addressB)
    XCTAssertEqual(fleet.outcomes(of: 10), [self.a: 5, self.c: 5])
    XCTAssertEqual(slow.flatMap(\.outcomes), [])
    XCTAssertEqual(fleet.log.count("closed \(self.b)"), 0)

    fleet.advance(by: .seconds(5))
    XCTAssertEqual(Set(slow.flatMap(\.outcomes)), [self.a, self.b, self.c])
    XCTAssertEqual(fleet.log.count("closed \(self.b)"), 1)
    XCTAssertEqual(fleet.cancelled.withLock { $0 }, [])

    fleet.transport.acceptConnections(at: self.addressB)
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.outcomes(of: 9), [self.a: 3, self.b: 3, self.c: 3])
  }

  func testOneIsDisconnectedWithCallsUnderWay() {
    let fleet = MemoryFleet()
    XCTAssertEqual(fleet.outcomes(of: 3).count, 3)
    let slow = (0..<12).map { _ in fleet.call("slow") }
    fleet.transport.refuseConnections(at: self.addressB)
    fleet.transport.disconnect(at: self.addressB)
    XCTAssertEqual(fleet.outcomes(of: 10), [self.a: 5, self.c: 5])
    let error = "unavailable: the connection broke: connection reset by peer"
    XCTAssertEqual(slow.flatMap(\.outcomes), Array(repeating: error, count: 4))
    XCTAssertEqual(fleet.cancelled.withLock { $0 }, Array(repeating: self.b, count: 4))

    fleet.advance(by: .seconds(5))
    XCTAssertEqual(slow.map(\.outcomes.count), Array(repeating: 1, count: 12))
    XCTAssertEqual(slow.count { $0.outcomes != [error] }, 8)
  }

  func testAllRefuse() {
    let fleet = MemoryFleet()
    fleet.transport.refuseConnections()
    let failed = fleet.call()
    XCTAssertEqual(failed.outcomes.count, 1)
    XCTAssertTrue(failed.outcomes[0].hasPrefix("unavailable: "), failed.outcomes[0])
    XCTAssertTrue(failed.outcomes[0].contains("connection refused"), failed.outcomes[0])

    // All but one go on refusing.
    fleet.transport.acceptConnections(at: self.addressB)
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(fleet.outcomes(of: 3), [self.b: 3])
    fleet.transport.acceptConnections()
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.outcomes(of: 9), [self.a: 3, self.b: 3, self.c: 3])
  }

  func testTheOneServerGoesAwayAndBreaks() {
    let fleet = MemoryFleet { $0.resolver = nil }
    for end in [InMemoryTransport.goAway, InMemoryTransport.disconnect] {
      XCTAssertEqual(fleet.call().outcomes, ["no address"])
      end(fleet.transport)(nil)
      XCTAssertEqual(fleet.call().outcomes, ["no address"])
      // The next loss comes after the backoff, or calls would wait for its end.
      fleet.advance(by: .seconds(2))
    }
    XCTAssertEqual(fleet.log.count("closed unix:memory"), 2)
    XCTAssertEqual(fleet.log.count("opened unix:memory"), 3)
    XCTAssertEqual(fleet.executor.scheduled, [])
  }

  /// A handler may end its own connection.
  func testAHandlerEndsItsConnection() {
    let error = "unavailable: the connection broke: connection reset by peer"
    for (text, outcome) in [("go away", "done"), ("disconnect", error)] {
      let fleet = MemoryFleet()
      fleet.transport.onUnary(TestMethods.echo) { [weak fleet] request, context in
        switch request.payload.text {
        case "go away": fleet?.transport.goAway(at: context.serverAddress)
        case "disconnect": fleet?.transport.disconnect(at: context.serverAddress)
        default: break
        }
        try await context.sleep(for: .seconds(1))
        return .with { $0.payload.text = "done" }
      }
      let calls = [fleet.call(), fleet.call(text), fleet.call()]
      fleet.advance(by: .seconds(1))
      XCTAssertEqual(calls.map(\.outcomes), [["done"], [outcome], ["done"]])
      XCTAssertEqual(fleet.log.all.count { $0.hasPrefix("closed") }, 1)
      XCTAssertEqual(fleet.log.all.count { $0.hasPrefix("opened") }, 4)
    }
  }

  /// A caller may end the connection of its own call, from where it hears of it.
  func testACallerEndsTheConnection() {
    let fleet = MemoryFleet { $0.resolver = nil }
    let calls = MemoryFleet.Call()
    fleet.client.unary(TestMethods.echo, EchoRequest()) { [weak fleet] response in
      calls.add(response)
      fleet?.transport.disconnect()
      fleet?.client.unary(TestMethods.echo, EchoRequest()) { calls.add($0) }
    }
    fleet.executor.runUntilIdle()
    XCTAssertEqual(calls.outcomes, ["no address", "no address"])
    XCTAssertEqual(fleet.log.all, ["opened", "closed", "opened"].map { "\($0) unix:memory" })
  }

  // MARK: Waiting

  func testWaitForReady() {
    let fleet = MemoryFleet { $0.resolver = nil }
    fleet.transport.refuseConnections()
    let waiting = fleet.call(options: CallOptions(waitForReady: true))
    XCTAssertEqual(
      fleet.call().outcomes,
      ["unavailable: cannot connect to http://fleet.test (connection refused)"]
    )
    fleet.advance(by: .seconds(30))
    XCTAssertEqual(waiting.outcomes, [])

    fleet.transport.acceptConnections()
    fleet.advance(by: .seconds(60))
    XCTAssertEqual(waiting.outcomes, ["no address"])
    XCTAssertEqual(fleet.executor.scheduled, [])
  }

  func testADeadlineEndsTheWaiting() {
    let fleet = MemoryFleet { $0.resolver = nil }
    fleet.transport.refuseConnections()
    let call = fleet.call(options: CallOptions(timeout: .seconds(3), waitForReady: true))
    fleet.advance(by: .milliseconds(2_999))
    XCTAssertEqual(call.outcomes, [])
    fleet.advance(by: .milliseconds(1))
    XCTAssertEqual(call.outcomes.count, 1)
    XCTAssertTrue(call.outcomes.first?.hasPrefix("deadline_exceeded") == true, "\(call.outcomes)")
  }

  // MARK: Health, outliers

  func testAServerSaysThatItIsNotServing() {
    let fleet = MemoryFleet(network: .grpc) { $0.healthCheckedService = "" }
    let addressB = self.addressB
    fleet.transport.onRaw("/grpc.health.v1.Health/Watch") { exchange in
      try await exchange.sendHead(status: 200, headers: ["content-type": ["application/grpc"]])
      func send(_ status: UInt8) async throws {
        try await exchange.sendBody(ByteBuffer(bytes: [0, 0, 0, 0, 2, 8, status]))
      }
      if exchange.head.serverAddress == addressB {
        try await send(2)
        try await exchange.sleep(for: .seconds(10))
      }
      try await send(1)
      await exchange.waitUntilClosed()
    }
    XCTAssertEqual(fleet.outcomes(of: 10), [self.a: 5, self.c: 5])
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.outcomes(of: 9), [self.a: 3, self.b: 3, self.c: 3])
  }

  func testAServerThatFailsIsEjected() {
    let outliers = OutlierDetection(
      successRate: nil,
      failurePercentage: .init(minimumHosts: 3, minimumCalls: 5)
    )
    let fleet = MemoryFleet(balancing: .outlierDetection(outliers, of: .roundRobin))
    let b = self.b
    fleet.transport.onUnary(TestMethods.echo) { _, context in
      let name = context.serverAddress.map { "\($0)" } ?? ""
      if name == b { throw ConnectError(code: .unavailable, message: "sick") }
      return .with { $0.payload.text = name }
    }
    XCTAssertEqual(fleet.outcomes(of: 30), [self.a: 10, self.c: 10, "unavailable: sick": 10])
    fleet.advance(by: .seconds(10))
    XCTAssertEqual(fleet.outcomes(of: 10), [self.a: 5, self.c: 5])
  }
}
