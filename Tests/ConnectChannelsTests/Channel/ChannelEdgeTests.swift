import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// What is easily done wrong: each of these went wrong once.
final class ChannelEdgeTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  /// Several calls wait at an HTTP/1.1 endpoint whose connections are gone: one failure is enough for all of them.
  func testHTTP1AttemptsHaveABackoff() {
    let fleet = FakeFleet([self.a])
    fleet.network.standard = .accepts(.http1, streams: 1)
    fleet.network.answer = { $0.end() }
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.run { fleet.network.connections[0].goAway() }
    fleet.network.standard = .hangs
    let calls = (0..<3).map { _ in fleet.call() }
    fleet.network.standard = .refuses
    let more = fleet.call()
    fleet.advance(by: .milliseconds(100))
    XCTAssertLessThan(fleet.network.attempts.count, 10)
    fleet.advance(by: .seconds(30))
    XCTAssertTrue((calls + [more]).allSatisfy { $0.error != nil })
    XCTAssertLessThan(fleet.network.attempts.count, 20)
  }

  /// A call that finds no room waits where it was picked to go, so that waiting calls are spread, too.
  func testWaitingCallsAreSpread() {
    let fleet = FakeFleet([self.a, self.b]) { $0.balancing = .roundRobin }
    fleet.network.standard = .accepts(.http1, streams: 1)
    fleet.run { fleet.channel.connect() }
    for _ in 0..<20 { fleet.call() }
    XCTAssertEqual(fleet.network.counts, [self.a: 10, self.b: 10])
  }

  /// Calls that get a connection during the shutdown are served.
  func testShutdownServesAllThatWait() {
    let fleet = FakeFleet([self.a], limits: ConnectionLimits(http2Connections: 1))
    fleet.network.standard = .accepts(streams: 1)
    let calls = (0..<3).map { _ in fleet.call() }
    var isFinished = false
    let finished = Confined({ isFinished = true }, to: fleet.executor)
    fleet.run { fleet.channel.shutDown(within: .seconds(30)) { finished.value() } }
    for _ in 0..<3 { fleet.run { fleet.network.connections[0].streams.first?.end() } }
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
    XCTAssertTrue(isFinished)
  }

  /// A server that accepts connections and closes them at once is not connected to again and again.
  func testConnectionsThatCloseAtOnce() {
    let fleet = FakeFleet([self.a]) { $0.balancing = .roundRobin }
    fleet.run { fleet.channel.connect() }
    for _ in 0..<50 {
      fleet.run { fleet.network.connections.last?.die() }
      fleet.advance(by: .milliseconds(10))
    }
    XCTAssertLessThan(fleet.network.attempts.count, 5)
    fleet.network.answer = { $0.end() }
    fleet.advance(by: .seconds(5))
    XCTAssertTrue(fleet.call().hasEnded)
  }

  /// A call that waits at an endpoint keeps the channel awake.
  func testNoIdlenessWhileCallsWait() {
    let fleet = FakeFleet([self.a]) { $0.idleTimeout = .seconds(5) }
    fleet.network.standard = .accepts(.http1, streams: 1)
    fleet.network.answer = { $0.end() }
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.run { fleet.network.connections[0].goAway() }
    fleet.network.standard = .hangs
    let call = fleet.call()
    fleet.advance(by: .seconds(15))
    XCTAssertTrue(call.isPending)
    XCTAssertNotEqual(fleet.channel.connectivity, .idle)
  }

  /// A client that is dropped still serves calls of those who have its endpoint.
  func testCallsAfterTheClientWasDropped() {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      let fleet = FakeFleet { $0.balancing = policy }
      fleet.network.answer = { $0.end() }
      let waiting = fleet.call()
      fleet.run { fleet.channel.closeWhenIdle() }
      fleet.resolve([self.a, self.b])
      XCTAssertTrue(waiting.hasEnded)
      XCTAssertTrue(fleet.call().hasEnded)
      XCTAssertLessThan(fleet.network.attempts.count, 6)
    }
  }

  func testNoIdleTimeAtAll() {
    let fleet = FakeFleet([self.a], limits: ConnectionLimits(idleTimeout: .zero))
    fleet.network.answer = { $0.end() }
    for count in 1...3 {
      XCTAssertTrue(fleet.call().hasEnded)
      fleet.advance(by: .milliseconds(2))
      XCTAssertEqual(fleet.network.attempts.count, count)
      // Else it would be one that is lost too quickly.
      fleet.advance(by: .seconds(2))
    }
  }

  /// Idle timeouts of 100 years set no timers, which tests in virtual time would see.
  func testNoTimersWithoutIdleTimeouts() {
    let fleet = FakeFleet([self.a], limits: ConnectionLimits(idleTimeout: .longest)) {
      $0.idleTimeout = .seconds(Int64.max)
    }
    fleet.network.answer = { $0.end() }
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(fleet.executor.scheduled, [])
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(fleet.executor.scheduled, [])
  }

  /// A policy that counts calls does so for endpoints that were there before.
  func testANewPolicyCountsCalls() {
    let fleet = FakeFleet()
    fleet.resolve([self.a, self.b])
    let first = fleet.call()
    let leastRequest =
      #"{ "loadBalancingConfig": [{ "least_request_experimental": { "choiceCount": 10 } }] }"#
    fleet.resolve([self.a, self.b], serviceConfig: leastRequest)
    fleet.run { fleet.channel.connect() }
    for _ in 0..<10 { fleet.call() }
    XCTAssertTrue(first.isPending)
    XCTAssertGreaterThanOrEqual(fleet.network.counts[self.b] ?? 0, 4)
  }

  func testCallsWithTheSameHashGoToTheSameEndpoint() {
    let fleet = FakeFleet((1...5).map { "10.0.0.\($0):80" }) { $0.balancing = .ringHash() }
    fleet.network.answer = { $0.end() }
    for _ in 0..<20 { XCTAssertTrue(fleet.call(hash: 42).hasEnded) }
    XCTAssertEqual(fleet.network.counts.values.filter { $0 > 0 }, [20])
  }

  /// While a server may be dead, calls go to the others, those that waited for it, too.
  func testASuspectServerGetsNoCalls() {
    let fleet = FakeFleet([self.a, self.b]) { $0.balancing = .roundRobin }
    fleet.network.answer = { $0.end() }
    fleet.run { fleet.channel.connect() }
    for _ in 0..<4 { XCTAssertTrue(fleet.call().hasEnded) }
    fleet.network.behaviours[self.b] = .hangs
    fleet.run { fleet.network.open(at: self.b).first?.suspect() }
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 12, self.b: 2])
    fleet.run { fleet.network.open(at: self.b).first?.isAlive() }
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 17, self.b: 7])
    // The server is dead: calls still go to the other one.
    fleet.run { fleet.network.open(at: self.b).first?.suspect() }
    fleet.run { fleet.network.open(at: self.b).first?.die() }
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 27, self.b: 7])
  }

  // MARK: Age

  func testAnOldConnectionIsReplacedBeforeItCloses() {
    let fleet = FakeFleet([self.a]) { $0.maximumConnectionAge = .seconds(100) }
    let long = fleet.call()
    fleet.advance(by: .seconds(89))
    XCTAssertEqual(fleet.network.attempts.count, 1)
    fleet.advance(by: .seconds(22))
    XCTAssertEqual(fleet.network.attempts.count, 2)
    XCTAssertEqual(fleet.network.connections.map(\.isDraining), [true, false])
    XCTAssertTrue(long.isPending)
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(long.hasEnded)
    let next = fleet.call()
    XCTAssertEqual(fleet.network.connections[1].streams.count, 1)
    XCTAssertTrue(next.isPending)
  }

  /// The old connection serves until there is another one.
  func testAnOldConnectionStaysWhereNoOtherIsToBeHad() {
    let fleet = FakeFleet([self.a]) { $0.maximumConnectionAge = .seconds(100) }
    _ = fleet.call()
    fleet.network.standard = .refuses
    fleet.advance(by: .seconds(115))
    XCTAssertEqual(fleet.network.connections.map(\.isDraining), [false])
    _ = fleet.call()
    XCTAssertEqual(fleet.network.connections[0].streams.count, 2)
    fleet.network.standard = .accepts()
    fleet.advance(by: .seconds(30))
    XCTAssertEqual(fleet.network.connections.map(\.isDraining), [true, false])
  }

  // MARK: Watching

  func testTheSnapshot() async {
    let fleet = FakeFleet([self.a, self.b]) { $0.balancing = .roundRobin }
    fleet.network.behaviours[self.b] = .refuses
    fleet.network.answer = { $0.end() }
    for _ in 0..<3 { XCTAssertTrue(fleet.call().hasEnded) }
    async let pending = fleet.channel.snapshot()
    let snapshot = await pending
    XCTAssertEqual(snapshot.state, .ready)
    XCTAssertEqual(snapshot.policy, "round_robin")
    XCTAssertEqual(snapshot.resolverUpdates, 1)
    XCTAssertEqual(snapshot.endpoints.map(\.state), [.ready, .transientFailure])
    XCTAssertEqual(snapshot.endpoints.map(\.startedCalls), [3, 0])
    XCTAssertEqual(snapshot.endpoints.map(\.failedAttempts), [0, 1])
    XCTAssertEqual(snapshot.endpoints.map(\.openedConnections), [1, 0])
    XCTAssertTrue(snapshot.description.contains("10.0.0.2:80: TRANSIENT_FAILURE"), snapshot.description)
  }

  private final class Events: ChannelObserver {
    private let list = LockedList()
    var all: [String] { self.list.all }

    func channel(to origin: Origin, did event: ChannelEvent) {
      switch event {
      case .stateChanged(let state): self.list.append("\(state)")
      case .resolved(let count): self.list.append("resolved \(count)")
      case .resolutionFailed: self.list.append("resolution failed")
      case .picked(let endpoint, let waited, _):
        self.list.append("picked \(endpoint) \(waited == nil ? "" : "waited")")
      case .connectionOpened(let endpoint): self.list.append("opened \(endpoint)")
      case .connectionFailed(let endpoint, _): self.list.append("failed \(endpoint)")
      case .connectionClosed(let endpoint): self.list.append("closed \(endpoint)")
      case .dropped(let category, _): self.list.append("dropped \(category)")
      case .ejected(let endpoint): self.list.append("ejected \(endpoint)")
      case .returned(let endpoint): self.list.append("returned \(endpoint)")
      }
    }
  }

  /// A call that waits since no connection is above suspicion goes on once one is.
  func testACallThatWaitsForASuspectServer() {
    let fleet = FakeFleet([self.a]) { $0.balancing = .roundRobin }
    fleet.network.standard = .accepts(streams: 1)
    for _ in 0..<2 { fleet.call() }
    fleet.network.standard = .hangs
    let connections = fleet.network.connections
    fleet.run { connections[0].suspect() }
    // It still has its call.
    fleet.run { connections[1].goAway() }
    let call = fleet.call()
    fleet.run {
      connections[0].streams[0].end()
      connections[0].isAlive()
    }
    XCTAssertEqual(connections[0].streams.count, 1)
    fleet.run { connections[0].streams.first?.end() }
    XCTAssertTrue(call.hasEnded)
  }

  func testTheObserver() {
    let events = Events()
    let fleet = FakeFleet([self.a, self.b]) { $0.observer = events }
    fleet.network.behaviours[self.a] = .refuses
    fleet.network.answer = { $0.end() }
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.run { fleet.network.connections[0].die() }
    XCTAssertEqual(
      events.all,
      [
        "CONNECTING", "resolved 2", "failed 10.0.0.1:80", "opened 10.0.0.2:80", "READY",
        "picked 10.0.0.2:80 waited", "picked 10.0.0.2:80 ", "closed 10.0.0.2:80", "IDLE",
      ]
    )
  }
}

private final class LockedList: Sendable {
  private let items = Mutex<[String]>([])
  var all: [String] { self.items.withLock { $0 } }
  func append(_ item: String) { self.items.withLock { $0.append(item) } }
}
