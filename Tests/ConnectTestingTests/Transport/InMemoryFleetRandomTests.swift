import Connect
import ConnectChannels
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import TestSupport
import XCTest

/// Servers that come, go and break in any order.
final class InMemoryFleetRandomTests: XCTestCase {
  private static let policies: [BalancingPolicy] = [.pickFirst, .roundRobin, .leastRequest()]

  /// Each call ends once, in one of the ways that can be, and all is well again once the servers are.
  func testEachCallEndsOnce() {
    for seed: UInt64 in 0..<60 {
      var random = SeededGenerator(quietly: seed)
      let policy = Self.policies[Int(seed) % Self.policies.count]
      let fleet = MemoryFleet(balancing: policy, network: Bool.random(using: &random) ? .connect : .grpc)
      var calls: [MemoryFleet.Call] = []
      var handles: [CallHandle] = []
      for _ in 0..<150 {
        let address = Int.random(in: 0..<4, using: &random)
        let server = address < 3 ? MemoryFleet.addresses[address] : nil
        switch Int.random(in: 0..<14, using: &random) {
        case 0: fleet.transport.refuseConnections(at: server)
        case 1: fleet.transport.acceptConnections(at: server)
        case 2: fleet.transport.goAway(at: server)
        case 3: fleet.transport.disconnect(at: server)
        case 4: fleet.resolve(MemoryFleet.addresses.filter { _ in Bool.random(using: &random) })
        case 5: handles.randomElement(using: &random)?.cancel()
        case 6: fleet.executor.runUntilIdle()
        case 7, 8: fleet.advance(by: .milliseconds(Int.random(in: 0..<4_000, using: &random)))
        default:
          let call = MemoryFleet.Call()
          let text = Bool.random(using: &random) ? "slow" : ""
          let options = CallOptions(waitForReady: Bool.random(using: &random))
          calls.append(call)
          // More may happen before the executor gets to it.
          handles.append(
            fleet.client.unary(TestMethods.echo, .with { $0.payload.text = text }, options: options) {
              call.add($0)
            }
          )
        }
      }
      fleet.transport.acceptConnections()
      fleet.resolve(MemoryFleet.addresses)
      fleet.advance(by: .seconds(300))
      XCTAssertEqual(calls.filter { $0.outcomes.count != 1 }.count, 0, "seed \(seed)")
      let outcomes = Set(calls.flatMap(\.outcomes))
      let others = outcomes.subtracting(MemoryFleet.names)
      XCTAssertTrue(
        others.allSatisfy { $0.hasPrefix("unavailable: ") || $0.hasPrefix("canceled") },
        "seed \(seed): \(others)"
      )
      XCTAssertFalse(outcomes.isDisjoint(with: MemoryFleet.names), "seed \(seed)")
      XCTAssertEqual(fleet.outcomes(of: 9).values.reduce(0, +), 9, "seed \(seed)")
      XCTAssertEqual(Set(fleet.outcomes(of: 9).keys).subtracting(MemoryFleet.names), [], "seed \(seed)")
      XCTAssertEqual(fleet.executor.scheduled, [], "seed \(seed)")
    }
  }
}
