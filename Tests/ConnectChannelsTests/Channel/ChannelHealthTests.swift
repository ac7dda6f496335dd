import Connect
import ConnectTesting
import NIOCore
import XCTest

@testable import ConnectChannels

/// Endpoints that their servers, or their calls, say are not well.
final class ChannelHealthTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  private static func status(_ status: HealthStatus) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.writeInteger(UInt8(0))
    bytes.writeInteger(UInt32(status == .unknown ? 0 : 2))
    if status != .unknown { bytes.writeBytes([0x08, UInt8(status.rawValue)]) }
    return bytes
  }

  /// Two servers whose health is what `health` says; other calls are answered at once.
  private func fleet(_ health: Health) -> FakeFleet {
    let fleet = FakeFleet([self.a, self.b]) {
      $0.balancing = .roundRobin
      $0.healthCheckedService = "pkg.Service"
    }
    fleet.network.answer = { stream in
      guard stream.request.target == "/grpc.health.v1.Health/Watch" else {
        stream.respond()
        stream.end()
        return
      }
      health.watches[stream.address] = stream
      guard let status = health.statuses[stream.address] else {
        stream.respond(["grpc-status": ["12"]])
        stream.end(["grpc-status": ["12"]])
        return
      }
      stream.respond(bytes: Self.status(status))
    }
    return fleet
  }

  private final class Health {
    var statuses: [String: HealthStatus] = [:]
    var watches: [String: FakeStream] = [:]
  }

  func testNotServingAndBack() {
    let health = Health()
    health.statuses = [self.a: .serving, self.b: .notServing]
    let fleet = self.fleet(health)
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 11, self.b: 1])
    fleet.run { health.watches[self.b]?.send(Self.status(.serving)) }
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 16, self.b: 6])
    fleet.run { health.watches[self.a]?.send(Self.status(.serviceUnknown)) }
    for _ in 0..<4 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts[self.b], 10)
    fleet.run { health.watches[self.b]?.send(Self.status(.notServing)) }
    let message = fleet.call().error?.message ?? ""
    XCTAssertTrue(message.contains("NOT_SERVING") || message.contains("SERVICE_UNKNOWN"), message)
    let patient = fleet.call(waitForReady: true)
    fleet.run { health.watches[self.b]?.send(Self.status(.serving)) }
    XCTAssertTrue(patient.hasEnded)
  }

  /// A server without the service counts as healthy.
  func testWithoutAHealthService() {
    let fleet = self.fleet(Health())
    fleet.run { fleet.channel.connect() }
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 6, self.b: 6])
    // It is not asked again.
    fleet.advance(by: .seconds(600))
    XCTAssertEqual(fleet.network.counts, [self.a: 6, self.b: 6])
  }

  /// A watch that fails before an answer is made again after a backoff; calls go elsewhere meanwhile.
  func testAWatchThatFails() {
    let health = Health()
    health.statuses = [self.a: .serving, self.b: .serving]
    let fleet = self.fleet(health)
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.run { health.watches[self.b]?.end(["grpc-status": ["14"]]) }
    // The first time at once, since there was an answer.
    for _ in 0..<4 { XCTAssertTrue(fleet.call().hasEnded) }
    let answer = fleet.network.answer
    fleet.network.answer = { stream in
      guard stream.request.target != "/a.B/C", stream.address == "10.0.0.2:80" else {
        answer?(stream)
        return
      }
      stream.end(["grpc-status": ["13"], "grpc-message": ["broken"]])
    }
    fleet.run { health.watches[self.b]?.end(["grpc-status": ["14"]]) }
    let before = fleet.network.counts
    for _ in 0..<4 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts[self.b], before[self.b])
    fleet.network.answer = answer
    fleet.advance(by: .seconds(3))
    for _ in 0..<4 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts[self.b].map { $0 - (before[self.b] ?? 0) }, 3)
  }

  /// The watch is no call: a connection that only has it can be drained, and the channel becomes idle.
  func testTheWatchKeepsNothingAlive() {
    let health = Health()
    health.statuses = [self.a: .serving, self.b: .serving]
    let fleet = self.fleet(health)
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.run { fleet.network.open(at: self.a).forEach { $0.goAway() } }
    XCTAssertEqual(fleet.network.connections.filter(\.isClosed).count, 1)
    fleet.advance(by: .seconds(1_801))
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    XCTAssertTrue(fleet.network.connections.allSatisfy(\.isClosed))
  }

  // MARK: Outliers

  func testAServerThatFailsIsEjectedAndReturns() {
    let fleet = FakeFleet((1...5).map { "10.0.0.\($0):80" }) {
      $0.balancing = .outlierDetection(OutlierDetection(maximumEjectionPercent: 50), of: .roundRobin)
    }
    var isFailing = true
    fleet.network.answer = { stream in
      let fails = isFailing && stream.address == "10.0.0.1:80"
      stream.respond()
      stream.end(["grpc-status": [fails ? "14" : "0"]])
    }
    for _ in 0..<500 { fleet.call() }
    let before = fleet.network.counts
    XCTAssertEqual(before[self.a], 100)
    fleet.advance(by: .seconds(11))
    for _ in 0..<100 { fleet.call() }
    XCTAssertEqual(fleet.network.counts[self.a], 100)
    XCTAssertEqual(fleet.network.counts[self.b].map { $0 - (before[self.b] ?? 0) }, 25)
    // It stays connected, and comes back after 30 s.
    XCTAssertEqual(fleet.network.open(at: self.a).count, 1)
    isFailing = false
    fleet.advance(by: .seconds(40))
    for _ in 0..<100 { fleet.call() }
    XCTAssertEqual(fleet.network.counts[self.a], 120)
  }

  /// Calls of a time when nobody judged do not count later.
  func testDetectionThatIsSwitchedOn() {
    let fleet = FakeFleet()
    func config(_ rule: String) -> String {
      #"{"loadBalancingConfig":[{"outlier_detection_experimental":{\#(rule)"childPolicy":[{"round_robin":{}}]}}]}"#
    }
    var isFailing = true
    fleet.network.answer = { stream in
      stream.respond()
      stream.end(["grpc-status": [isFailing && stream.address == "10.0.0.1:80" ? "14" : "0"]])
    }
    let addresses = (1...5).map { "10.0.0.\($0):80" }
    fleet.resolve(addresses, serviceConfig: config(""))
    for _ in 0..<500 { fleet.call() }
    isFailing = false
    fleet.resolve(addresses, serviceConfig: config(#""failurePercentageEjection":{"minimumHosts":5},"#))
    for _ in 0..<50 { fleet.call() }
    fleet.advance(by: .seconds(11))
    let before = fleet.network.counts[self.a]
    for _ in 0..<50 { fleet.call() }
    XCTAssertEqual(fleet.network.counts[self.a].map { $0 - (before ?? 0) }, 10)
  }

  /// Calls that run out of time count against the server, calls that their callers give up do not.
  func testTimeoutsCount() {
    for expires in [true, false] {
      let fleet = FakeFleet((1...5).map { "10.0.0.\($0):80" }) {
        $0.balancing = .outlierDetection(.defaults, of: .roundRobin)
      }
      fleet.network.answer = { stream in if stream.address != "10.0.0.1:80" { stream.end() } }
      for _ in 0..<500 {
        let call = fleet.call()
        if call.isPending { fleet.run { expires ? call.expire() : call.cancel() } }
      }
      fleet.advance(by: .seconds(11))
      let before = fleet.network.counts[self.a]
      for _ in 0..<50 { fleet.call() }
      XCTAssertEqual(fleet.network.counts[self.a] == before, expires)
    }
  }
}
