import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

final class OriginChannelTests: XCTestCase {
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"
  private let c = "10.0.0.3:80"

  // MARK: One endpoint

  func testCallsShareAConnection() {
    let fleet = FakeFleet([self.a])
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    XCTAssertEqual(fleet.network.attempts, [])
    let calls = [fleet.call(), fleet.call()]
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    XCTAssertEqual(fleet.network.attempts, [self.a])
    XCTAssertEqual(fleet.network.connections.first?.streams.count, 2)
    fleet.run { for stream in fleet.network.connections[0].streams { stream.end() } }
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
  }

  func testAFailureIsToldAtOnceUntilTheBackoffIsOver() {
    let fleet = FakeFleet([self.a])
    fleet.network.standard = .refuses
    XCTAssertEqual(fleet.call().error?.message, "cannot connect (10.0.0.1:80: refused)")
    XCTAssertEqual(fleet.channel.connectivity, .transientFailure)
    // At once, without another attempt.
    XCTAssertEqual(fleet.call().error?.code, .unavailable)
    XCTAssertEqual(fleet.network.attempts.count, 1)
    let patient = fleet.call(waitForReady: true)
    XCTAssertTrue(patient.isPending)
    fleet.advance(by: .milliseconds(1_201))
    XCTAssertEqual(fleet.network.attempts.count, 2)
    XCTAssertTrue(patient.isPending)
    fleet.network.standard = .accepts()
    fleet.advance(by: .milliseconds(1_921))
    XCTAssertEqual(fleet.network.attempts.count, 3)
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(patient.hasEnded)
  }

  func testAllAddressesOfPickFirstAreInTheError() {
    let fleet = FakeFleet([self.a, self.b])
    fleet.network.standard = .refuses
    let message = fleet.call().error?.message
    XCTAssertEqual(
      message,
      "cannot connect to http://fleet.test (10.0.0.1:80: refused; 10.0.0.2:80: refused)"
    )
  }

  func testHappyEyeballs() {
    let fleet = FakeFleet([self.a, self.b])
    fleet.network.behaviours[self.a] = .hangs
    let call = fleet.call()
    XCTAssertEqual(fleet.network.attempts, [self.a])
    fleet.advance(by: .milliseconds(250))
    XCTAssertEqual(fleet.network.attempts, [self.a, self.b])
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(call.hasEnded)
  }

  func testGoAwayMovesCallsToAnotherConnection() {
    let fleet = FakeFleet([self.a])
    let first = fleet.call()
    fleet.run { fleet.network.connections[0].goAway() }
    // The next connection is opened while the first call goes on.
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    XCTAssertEqual(fleet.network.connections.count, 2)
    let second = fleet.call()
    XCTAssertEqual(fleet.network.connections.count, 2)
    // The first call goes on where it is.
    XCTAssertFalse(fleet.network.connections[0].isClosed)
    fleet.run {
      fleet.network.connections[0].streams[0].end()
      fleet.network.connections[1].streams[0].end()
    }
    XCTAssertTrue(first.hasEnded && second.hasEnded)
    XCTAssertTrue(fleet.network.connections[0].isClosed)
  }

  /// Without calls, a connection that goes away is not replaced before the next call.
  func testGoAwayWithoutCalls() {
    let fleet = FakeFleet([self.a])
    let first = fleet.call()
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(first.hasEnded)
    fleet.run { fleet.network.connections[0].goAway() }
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    XCTAssertEqual(fleet.network.attempts.count, 1)
  }

  /// However often a server renews its connections, calls do not wait for a backoff.
  func testServersThatRenewConnections() {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      for waitsForCall in [true, false] {
        let fleet = FakeFleet([self.a]) { $0.balancing = policy }
        let start = fleet.executor.now
        for round in 0..<50 {
          let call = fleet.call()
          guard let connection = fleet.network.open(at: self.a).last else { return XCTFail("\(round)") }
          if !waitsForCall { fleet.run { connection.goAway() } }
          fleet.run { connection.streams.first?.end() }
          if waitsForCall { fleet.run { connection.goAway() } }
          XCTAssertTrue(call.hasEnded, "\(policy) \(round)")
        }
        XCTAssertEqual(fleet.executor.now, start)
      }
    }
  }

  /// A server that loses each connection before it has served anything: calls fail at once in place of waiting, and the next
  /// one has another connection. Without calls, there are few attempts.
  func testConnectionsThatDieYoung() {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      let fleet = FakeFleet([self.a]) { $0.balancing = policy }
      let start = fleet.executor.now
      for _ in 0..<10 {
        let call = fleet.call()
        fleet.run { fleet.network.connections.last?.die() }
        XCTAssertEqual(call.error?.message, "the connection was reset")
      }
      XCTAssertEqual(fleet.executor.now, start)
      let attempts = fleet.network.attempts.count
      XCTAssertLessThanOrEqual(attempts, 11)
      let last = fleet.call()
      fleet.run { fleet.network.connections.last?.streams.first?.end() }
      XCTAssertTrue(last.hasEnded)
    }
    // A server that takes no streams: a call that only waits has few attempts made, too.
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      let limits = ConnectionLimits(http2Connections: 1)
      let fleet = FakeFleet([self.a], limits: limits) { $0.balancing = policy }
      fleet.network.standard = .accepts(streams: 0)
      let call = fleet.call()
      for _ in 0..<600 {
        fleet.run { fleet.network.open(at: self.a).last?.die() }
        fleet.advance(by: .milliseconds(100))
      }
      XCTAssertTrue(call.isPending)
      XCTAssertLessThanOrEqual(fleet.network.attempts.count, 10, "\(policy)")
    }
    let eager = FakeFleet([self.a]) { $0.balancing = .roundRobin }
    eager.run { eager.channel.connect() }
    for _ in 0..<600 {
      eager.run { eager.network.open(at: self.a).last?.die() }
      eager.advance(by: .milliseconds(100))
    }
    // After 0, 0, 1, 1.6, 2.56 … seconds.
    XCTAssertLessThanOrEqual(eager.network.attempts.count, 10)
    XCTAssertGreaterThanOrEqual(eager.network.attempts.count, 6)
  }

  /// The server that all calls go to may be dead: the other addresses are tried.
  func testPickFirstLeavesASuspectServer() {
    let fleet = FakeFleet([self.a, self.b, self.c])
    let first = fleet.call()
    XCTAssertEqual(fleet.network.counts, [self.a: 1])
    fleet.network.behaviours[self.a] = .hangs
    fleet.network.behaviours[self.b] = .hangs
    fleet.run { fleet.network.connections[0].suspect() }
    let second = fleet.call()
    fleet.advance(by: .milliseconds(250))
    XCTAssertEqual(fleet.network.attempts, [self.a, self.b])
    fleet.advance(by: .milliseconds(250))
    XCTAssertEqual(fleet.network.attempts, [self.a, self.b, self.c])
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.c: 1])
    fleet.run { fleet.network.connections[1].streams[0].end() }
    XCTAssertTrue(second.hasEnded)
    // The call that the server has may still be answered.
    XCTAssertTrue(first.isPending)
    fleet.run { fleet.network.connections[0].isAlive() }
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(first.hasEnded)
    XCTAssertTrue(fleet.network.connections[0].isClosed, "it is of no use any more")
    fleet.call()
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.c: 2])
  }

  /// The same for endpoints with different names for TLS, which are tried one after the other.
  func testPickFirstLeavesASuspectServerWithAnotherName() throws {
    let fleet = FakeFleet()
    var endpoints = try [self.a, self.b].map { try XCTUnwrap(Endpoint($0)) }
    endpoints[1].serverName = "other.test"
    fleet.resolver.update(endpoints)
    fleet.executor.runUntilIdle()
    fleet.call()
    fleet.network.behaviours[self.a] = .hangs
    fleet.run { fleet.network.connections[0].suspect() }
    fleet.call()
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.b: 1])
  }

  func testMoreConnectionsAtTheStreamLimit() {
    let fleet = FakeFleet([self.a], limits: ConnectionLimits(http2Connections: 2))
    fleet.network.standard = .accepts(streams: 2)
    let calls = (0..<6).map { _ in fleet.call() }
    XCTAssertEqual(fleet.network.connections.map(\.streams.count), [2, 2])
    for _ in 0..<3 {
      fleet.run { for connection in fleet.network.connections { connection.streams.first?.end() } }
    }
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
  }

  /// Idle HTTP/1.1 connections are closed by servers as a matter of course: the endpoint stays ready.
  func testHTTP1ConnectionsComeAndGo() {
    let fleet = FakeFleet([self.a])
    fleet.network.standard = .accepts(.http1, streams: 1)
    let calls = [fleet.call(), fleet.call()]
    XCTAssertEqual(fleet.network.connections.count, 2)
    fleet.run { for connection in fleet.network.connections { connection.streams.first?.end() } }
    XCTAssertTrue(calls.allSatisfy(\.hasEnded))
    fleet.run { for connection in fleet.network.connections { connection.goAway() } }
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    let call = fleet.call()
    XCTAssertEqual(fleet.network.connections.count, 3)
    // The server has gone meanwhile.
    fleet.run { fleet.network.connections[2].streams[0].end() }
    XCTAssertTrue(call.hasEnded)
    fleet.run { fleet.network.connections[2].goAway() }
    fleet.network.standard = .refuses
    XCTAssertEqual(fleet.call().error?.message, "cannot connect (10.0.0.1:80: refused)")
    XCTAssertEqual(fleet.channel.connectivity, .transientFailure)
  }

  /// A connection on which a call has timed out in silence serves the next one only after it has answered.
  func testASuspectConnection() {
    let fleet = FakeFleet([self.a])
    let first = fleet.call()
    fleet.network.standard = .hangs
    fleet.run {
      first.expire()
      fleet.network.connections[0].suspect()
    }
    let second = fleet.call()
    XCTAssertEqual(fleet.network.connections[0].streams.count, 0)
    XCTAssertEqual(fleet.network.attempts.count, 1, "most servers answer soon")
    fleet.advance(by: .milliseconds(250))
    // Another one is tried meanwhile.
    XCTAssertEqual(fleet.network.attempts.count, 2)
    fleet.run { fleet.network.connections[0].isAlive() }
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(second.hasEnded)

    fleet.run { fleet.network.connections[0].suspect() }
    let third = fleet.call()
    fleet.network.standard = .accepts()
    fleet.run { fleet.network.connections[0].die() }
    XCTAssertTrue(third.isPending)
  }

  // MARK: Several endpoints

  private func roundRobin(_ addresses: [String], _ configure: (inout ChannelConfiguration) -> Void = { _ in })
    -> FakeFleet
  {
    let fleet = FakeFleet(addresses) {
      $0.balancing = .roundRobin
      configure(&$0)
    }
    fleet.network.answer = {
      $0.respond()
      $0.end()
    }
    return fleet
  }

  func testRoundRobinIsEven() {
    let fleet = self.roundRobin([self.a, self.b, self.c])
    fleet.run { fleet.channel.connect() }
    for _ in 0..<300 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 100, self.b: 100, self.c: 100])
  }

  func testCallsGoOnWhereOneServerDies() {
    let fleet = self.roundRobin([self.a, self.b, self.c])
    for _ in 0..<30 { XCTAssertTrue(fleet.call().hasEnded) }
    fleet.network.behaviours[self.b] = .refuses
    fleet.run { fleet.network.open(at: self.b).forEach { $0.die() } }
    let before = fleet.network.counts
    for _ in 0..<40 { XCTAssertTrue(fleet.call().hasEnded) }
    let after = fleet.network.counts
    XCTAssertEqual(after[self.b], before[self.b])
    XCTAssertEqual(after[self.a].map { $0 - (before[self.a] ?? 0) }, 20)
    // It comes back.
    fleet.network.behaviours[self.b] = nil
    fleet.advance(by: .seconds(5))
    for _ in 0..<30 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts[self.b].map { $0 - (after[self.b] ?? 0) }, 10)
  }

  func testAllDownThenOneBack() {
    let fleet = self.roundRobin([self.a, self.b])
    fleet.network.standard = .refuses
    let message = fleet.call().error?.message ?? ""
    XCTAssertTrue(
      message.hasPrefix("cannot reach http://fleet.test: none of 2 endpoints is available"),
      message
    )
    XCTAssertTrue(message.contains("refused"), message)
    let patient = fleet.call(waitForReady: true)
    XCTAssertTrue(patient.isPending)
    fleet.network.behaviours[self.b] = .accepts()
    fleet.advance(by: .seconds(5))
    XCTAssertTrue(patient.hasEnded)
    XCTAssertTrue(fleet.call().hasEnded)
  }

  func testAddressesComeAndGo() {
    let fleet = self.roundRobin([self.a, self.b])
    fleet.run { fleet.channel.connect() }
    fleet.network.answer = nil
    let long = [fleet.call(), fleet.call()]
    fleet.network.answer = { $0.end() }
    fleet.resolve([self.b, self.c])
    for _ in 0..<10 { XCTAssertTrue(fleet.call().hasEnded) }
    XCTAssertEqual(fleet.network.counts, [self.a: 1, self.b: 6, self.c: 5])
    // The calls on the endpoint that has left finish there.
    let left = fleet.network.open(at: self.a)
    XCTAssertEqual(left.map(\.isDraining), [true])
    fleet.run { fleet.network.connections.forEach { $0.streams.first?.end() } }
    XCTAssertTrue(long.allSatisfy(\.hasEnded))
    XCTAssertTrue(fleet.network.open(at: self.a).isEmpty)
    // The one that stays has kept its connection.
    XCTAssertEqual(fleet.network.attempts.filter { $0 == self.b }.count, 1)
  }

  /// One endpoint is lost each time, and none of the calls in between.
  func testARollingRestart() {
    let addresses = (1...10).map { "10.0.0.\($0):80" }
    let fleet = self.roundRobin(addresses)
    for round in 0..<3 {
      for address in addresses {
        fleet.network.behaviours[address] = .refuses
        fleet.run { fleet.network.open(at: address).forEach { $0.goAway() } }
        for _ in 0..<20 { XCTAssertTrue(fleet.call().hasEnded, "round \(round)") }
        fleet.network.behaviours[address] = nil
        fleet.advance(by: .milliseconds(1_300))
      }
    }
    XCTAssertEqual(fleet.network.counts.count, 10)
  }

  // MARK: Names

  func testNamesThatCannotBeResolved() {
    let fleet = FakeFleet()
    let waiting = fleet.call()
    let patient = fleet.call(waitForReady: true)
    XCTAssertEqual(fleet.channel.connectivity, .connecting)
    fleet.resolver.fail(ConnectError(code: .unavailable, message: "no such name"))
    fleet.executor.runUntilIdle()
    XCTAssertEqual(waiting.error?.message, "no such name")
    XCTAssertEqual(fleet.call().error?.message, "no such name")
    XCTAssertEqual(fleet.channel.connectivity, .transientFailure)
    fleet.network.answer = { $0.end() }
    fleet.resolve([self.a])
    XCTAssertTrue(patient.hasEnded)
    // A failure keeps the last good answer.
    fleet.resolver.fail(ConnectError(code: .unavailable, message: "no such name"))
    fleet.executor.runUntilIdle()
    XCTAssertTrue(fleet.call().hasEnded)
  }

  func testAResolverThatHangs() {
    let fleet = FakeFleet()
    let call = fleet.call()
    fleet.advance(by: .seconds(19))
    XCTAssertTrue(call.isPending)
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(
      call.error?.message,
      "resolving the name of http://fleet.test timed out after 20.0 seconds"
    )
  }

  func testANameWithoutAddresses() {
    for policy in [BalancingPolicy.pickFirst, .roundRobin] {
      let fleet = FakeFleet { $0.balancing = policy }
      let call = fleet.call()
      fleet.resolve([])
      XCTAssertEqual(
        call.error?.message,
        "cannot reach http://fleet.test: there are no addresses to connect to"
      )
      fleet.network.answer = { $0.end() }
      fleet.resolve([self.a])
      XCTAssertTrue(fleet.call().hasEnded)
    }
  }

  func testAServiceConfigChoosesThePolicy() {
    let fleet = FakeFleet()
    fleet.network.answer = { $0.end() }
    let roundRobin = #"{ "loadBalancingConfig": [{ "round_robin": {} }] }"#
    fleet.resolve([self.a, self.b], serviceConfig: roundRobin)
    for _ in 0..<4 { fleet.call() }
    XCTAssertEqual(fleet.network.counts, [self.a: 2, self.b: 2])
    // One that is invalid keeps the last good one.
    fleet.resolve([self.a, self.b], serviceConfig: "{")
    for _ in 0..<4 { fleet.call() }
    XCTAssertEqual(fleet.network.counts, [self.a: 4, self.b: 4])
  }

  // MARK: Life

  func testIdlenessAndWaking() {
    let fleet = self.roundRobin([self.a, self.b])
    XCTAssertTrue(fleet.call().hasEnded)
    fleet.advance(by: .seconds(1_799))
    XCTAssertEqual(fleet.channel.connectivity, .ready)
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    XCTAssertTrue(fleet.network.connections.allSatisfy(\.isClosed))
    XCTAssertTrue(fleet.call().hasEnded)
    XCTAssertEqual(fleet.network.attempts.count, 4)
  }

  func testShutdownFinishesWhatIsUnderWay() {
    let fleet = FakeFleet([self.a])
    let running = fleet.call()
    var isFinished = false
    let finished = Confined({ isFinished = true }, to: fleet.executor)
    fleet.run { fleet.channel.shutDown(within: .seconds(30)) { finished.value() } }
    XCTAssertEqual(fleet.call().error?.message, ConnectError.clientShutDown.message)
    XCTAssertFalse(isFinished)
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(running.hasEnded)
    XCTAssertTrue(isFinished)
    XCTAssertEqual(fleet.channel.connectivity, .shutdown)
  }

  func testForcedShutdown() {
    let fleet = FakeFleet([self.a], limits: ConnectionLimits(http2Connections: 1))
    fleet.network.standard = .accepts(streams: 1)
    let calls = [fleet.call(), fleet.call()]
    var isFinished = false
    let finished = Confined({ isFinished = true }, to: fleet.executor)
    fleet.run { fleet.channel.shutDown(within: .seconds(3)) { finished.value() } }
    fleet.advance(by: .seconds(3))
    for call in calls {
      XCTAssertTrue(call.error?.message?.contains("before the call had finished") == true)
    }
    XCTAssertTrue(isFinished)
  }

  func testShutdownWhileNothingWorks() {
    for behaviour in [FakeNetwork.Behaviour.hangs, .refuses] {
      let fleet = FakeFleet([self.a, self.b])
      fleet.network.standard = behaviour
      let call = fleet.call(waitForReady: true)
      var isFinished = false
      let finished = Confined({ isFinished = true }, to: fleet.executor)
      fleet.run { fleet.channel.shutDown(within: .seconds(3)) { finished.value() } }
      fleet.advance(by: .seconds(4))
      XCTAssertNotNil(call.error)
      XCTAssertTrue(isFinished)
    }
  }

  /// Calls that are given up leave nothing behind, wherever they wait.
  func testCancelledCalls() {
    let fleet = FakeFleet(limits: ConnectionLimits(http2Connections: 1))
    fleet.network.standard = .accepts(streams: 1)
    let first = fleet.call()
    fleet.run { first.cancel() }
    XCTAssertEqual(fleet.channel.waiting.count, 0)
    fleet.resolve([self.a])
    let running = fleet.call()
    let waiting = fleet.call()
    fleet.run { waiting.cancel() }
    fleet.run { running.cancel() }
    XCTAssertTrue(fleet.network.connections[0].streams.isEmpty)
    let last = fleet.call()
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(last.hasEnded)
  }

  func testTheStateAsASequence() async {
    let fleet = FakeFleet([self.a])
    let changes = fleet.channel.connectivityChanges()
    fleet.call()
    fleet.run { fleet.network.connections[0].die() }
    fleet.run { fleet.channel.shutDown(within: .zero) {} }
    fleet.advance(by: .milliseconds(1))
    var states: [ConnectivityState] = []
    for await state in changes { states.append(state) }
    XCTAssertEqual(states, [.idle, .connecting, .ready, .idle, .shutdown])
  }

  func testADroppedChannelGoesAway() {
    let executor = VirtualExecutor()
    weak var channel: OriginChannel?
    weak var connection: FakeConnection?
    do {
      let fleet = FakeFleet([self.a])
      let call = fleet.call()
      fleet.run { fleet.network.connections[0].streams[0].end() }
      XCTAssertTrue(call.hasEnded)
      channel = fleet.channel
      connection = fleet.network.connections[0]
      fleet.run { fleet.channel.closeWhenIdle() }
      XCTAssertEqual(connection?.isClosed, true)
      fleet.advance(by: .seconds(3_600))
    }
    executor.runUntilIdle()
    XCTAssertNil(channel)
  }
}
