import Connect
import XCTest

@testable import ConnectChannels

final class ConnectionPoolTests: XCTestCase {
  // MARK: Opening

  func testFirstCallOpensAndIsStarted() {
    var harness = PoolHarness(version: .http1)
    XCTAssertNil(harness.pool.leaseConnection())
    harness.wait(1)
    XCTAssertEqual(harness.attempts.count, 1)
    let connection = harness.succeed(.http1)
    XCTAssertEqual(harness.started.map(\.waiter), [1])
    XCTAssertEqual(harness.started.map(\.connection), [connection])
    XCTAssertNil(harness.pool.leaseConnection())
    harness.streamCloses(on: connection)
    XCTAssertEqual(harness.pool.leaseConnection(), connection)
  }

  func testNothingStartsBeforeTheConnectionCanServe() {
    var harness = PoolHarness(version: .http2)
    harness.wait(1)
    let connection = harness.establish(.http2)
    XCTAssertTrue(harness.started.isEmpty)
    XCTAssertNil(harness.pool.leaseConnection())
    harness.canServe(connection, 3)
    XCTAssertEqual(harness.started.map(\.waiter), [1])
    XCTAssertEqual(harness.pool.leaseConnection(), connection)
    XCTAssertEqual(harness.pool.leaseConnection(), connection)
    XCTAssertNil(harness.pool.leaseConnection())
  }

  func testHTTP1OpensOnePerCallUpToTheLimit() {
    var harness = PoolHarness(http1: 2, version: .http1)
    for call in 1...4 { harness.wait(call) }
    XCTAssertEqual(harness.attempts.count, 2)
    let first = harness.succeed(.http1)
    let second = harness.succeed(.http1)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2])
    harness.streamCloses(on: second)
    harness.streamCloses(on: first)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2, 3, 4])
    XCTAssertEqual(harness.started.map(\.connection), [first, second, second, first])
  }

  func testHTTP1PrefersTheConnectionUsedLast() {
    var harness = PoolHarness(version: .http1)
    harness.wait(1)
    harness.wait(2)
    let first = harness.succeed(.http1)
    let second = harness.succeed(.http1)
    harness.streamCloses(on: second)
    harness.streamCloses(on: first)
    XCTAssertEqual(harness.pool.leaseConnection(), first)
    XCTAssertEqual(harness.pool.leaseConnection(), second)
  }

  func testHTTP2OpensOneAtATimeAndPrefersTheFullest() {
    var harness = PoolHarness(http2: 2, version: .http2)
    for call in 1...6 { harness.wait(call) }
    XCTAssertEqual(harness.attempts.count, 1)
    let first = harness.succeed(.http2, streams: 2)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2])
    XCTAssertEqual(harness.attempts.count, 1)
    let second = harness.succeed(.http2, streams: 3)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2, 3, 4, 5])
    // The limit; call 6 waits for a stream.
    XCTAssertEqual(harness.attempts.count, 0)
    harness.streamCloses(on: first)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2, 3, 4, 5, 6])
    harness.streamCloses(on: first)
    harness.streamCloses(on: second)
    // 1 of 2 and 2 of 3.
    XCTAssertEqual(harness.pool.leaseConnection(), second)
    XCTAssertEqual(harness.pool.leaseConnection(), first)
    XCTAssertNil(harness.pool.leaseConnection())
  }

  func testUnknownVersionOpensOneThenLearns() {
    for version in [HTTPConnectionInfo.Version.http1, .http2] {
      var harness = PoolHarness(http1: 3, version: nil)
      for call in 1...4 { harness.wait(call) }
      XCTAssertEqual(harness.attempts.count, 1)
      harness.succeed(version, streams: version == .http2 ? 2 : 1)
      XCTAssertEqual(harness.attempts.count, version == .http2 ? 1 : 2)
    }
  }

  func testOriginThatTurnsToHTTP2KeepsFewConnections() {
    var harness = PoolHarness(http1: 5, http2: 1, version: .http1)
    for call in 1...5 { harness.wait(call) }
    XCTAssertEqual(harness.attempts.count, 5)
    let connections = (0..<5).map { _ in harness.succeed(.http2, streams: 100) }
    XCTAssertEqual(harness.started.map(\.connection), Array(repeating: connections[0], count: 5))
    XCTAssertEqual(harness.drained, Array(connections[1...]))
  }

  func testSettingsRaiseAndLowerTheLimit() {
    var harness = PoolHarness(http2: 1, version: .http2)
    for call in 1...4 { harness.wait(call) }
    let connection = harness.succeed(.http2, streams: 1)
    harness.canServe(connection, 3)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2, 3])
    harness.canServe(connection, 1)
    harness.streamCloses(on: connection)
    harness.streamCloses(on: connection)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2, 3])
    harness.streamCloses(on: connection)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2, 3, 4])
  }

  // MARK: Waiting

  func testQueueLimit() {
    // Two for which connections are opened, and two more.
    var harness = PoolHarness(http1: 2, waiting: 2, version: .http1)
    let handle = harness.wait(1)
    for waiter in 2...4 { harness.wait(waiter) }
    guard case .tooMany = harness.pool.enqueue(5) else { return XCTFail("accepted") }
    if let handle { harness.run(harness.pool.cancel(handle)) }
    harness.wait(6)
    harness.succeed(.http1)
    harness.succeed(.http1)
    XCTAssertEqual(harness.started.map(\.waiter), [2, 3])
    guard case .tooMany = harness.pool.enqueue(7) else { return XCTFail("accepted") }
  }

  /// None waits for others to end, but each connection that can be opened is, and serves.
  func testNoneMayWait() {
    var http1 = PoolHarness(http1: 2, waiting: 0, version: .http1)
    http1.wait(1)
    http1.wait(2)
    guard case .tooMany = http1.pool.enqueue(3) else { return XCTFail("accepted") }
    let connection = http1.succeed(.http1)
    guard case .tooMany = http1.pool.enqueue(4) else { return XCTFail("accepted") }
    http1.succeed(.http1)
    XCTAssertEqual(http1.started.map(\.waiter), [1, 2])
    guard case .tooMany = http1.pool.enqueue(5) else { return XCTFail("accepted") }
    http1.streamCloses(on: connection)
    XCTAssertEqual(http1.pool.leaseConnection(), connection)
    http1.closes(connection)
    http1.wait(6)

    for version in [HTTPConnectionInfo.Version.http2, nil] {
      var http2 = PoolHarness(http2: 1, waiting: 0, version: version)
      for waiter in 1...100 { http2.wait(waiter) }
      guard case .tooMany = http2.pool.enqueue(101) else { return XCTFail("accepted") }
      http2.succeed(.http2, streams: 100)
      XCTAssertEqual(http2.started.count, 100)
      guard case .tooMany = http2.pool.enqueue(102) else { return XCTFail("accepted") }
    }
  }

  func testNoLimitsAtAll() {
    for version in [HTTPConnectionInfo.Version.http1, .http2, nil] {
      var harness = PoolHarness(http1: .max, http2: .max, waiting: .max, version: version)
      for waiter in 1...100 { harness.wait(waiter) }
      XCTAssertEqual(harness.pool.growth.maximumWaiting(harness.pool.connections), .max)
    }
  }

  func testCancelledCallLeavesTheConnectionIdle() {
    var harness = PoolHarness(version: .http1)
    guard let handle = harness.wait(1) else { return }
    harness.run(harness.pool.cancel(handle))
    harness.run(harness.pool.cancel(handle))
    let connection = harness.succeed(.http1)
    XCTAssertTrue(harness.started.isEmpty)
    XCTAssertEqual(harness.idleChecks, [.seconds(60)])
    XCTAssertEqual(harness.pool.leaseConnection(), connection)
  }

  // MARK: Failing

  func testFailedAttemptFailsAllThatWait() {
    for version in [HTTPConnectionInfo.Version.http2, nil] {
      var harness = PoolHarness(version: version)
      for call in 1...3 { harness.wait(call) }
      harness.failAttempt("refused")
      XCTAssertEqual(harness.failed.map(\.waiter), [1, 2, 3])
      XCTAssertEqual(harness.failed.map(\.error.message), ["refused", "refused", "refused"])
      XCTAssertTrue(harness.attempts.isEmpty)
    }
  }

  /// With no connection one failure is enough: whoever adopts connections has a backoff.
  func testAFailureWithoutAConnectionGivesUpAllAttempts() {
    var harness = PoolHarness(http1: 3, version: .http1)
    for call in 1...5 { harness.wait(call) }
    harness.failAttempt()
    XCTAssertEqual(harness.failed.map(\.waiter), [1, 2, 3, 4, 5])
    XCTAssertEqual(harness.abandoned.count, 2)
    XCTAssertEqual(harness.losses.count, 1)
  }

  func testCallsWaitBesideAnOpenConnection() {
    var harness = PoolHarness(http1: 3, version: .http1)
    for call in 1...5 { harness.wait(call) }
    harness.succeed(.http1)
    harness.failAttempt()
    harness.failAttempt()
    // The open connection will serve them.
    XCTAssertTrue(harness.failed.isEmpty)
    XCTAssertEqual(harness.losses.count, 0)
    XCTAssertEqual(harness.backOffs, [1])
  }

  /// A server that has stopped listening, and still serves a long call: the calls that wait must not make the pool
  /// connect again and again.
  func testAttemptsBesideAnOpenConnectionBackOff() {
    var harness = PoolHarness(http1: 3, version: .http1)
    harness.wait(1)
    harness.succeed(.http1)
    harness.wait(2)
    harness.wait(3)
    var failures = 0
    for _ in 0..<100 where !harness.attempts.isEmpty {
      harness.failAttempt()
      failures += 1
    }
    XCTAssertEqual(failures, 2)
    XCTAssertEqual(harness.backOffs, [1])
    XCTAssertTrue(harness.failed.isEmpty)
    harness.run(harness.pool.backoffDidElapse())
    XCTAssertEqual(harness.attempts.count, 2)
    harness.failAttempt()
    harness.failAttempt()
    XCTAssertEqual(harness.backOffs, [1, 2])
    XCTAssertTrue(harness.attempts.isEmpty)
    // Success forgets it all.
    harness.run(harness.pool.backoffDidElapse())
    harness.succeed(.http1)
    harness.failAttempt()
    XCTAssertEqual(harness.backOffs, [1, 2, 1])
  }

  func testConnectionThatNeverServesIsAFailedAttempt() {
    var harness = PoolHarness(version: .http2)
    harness.wait(1)
    let connection = harness.establish(.http2)
    harness.willClose(connection)
    XCTAssertTrue(harness.attempts.isEmpty)
    harness.closes(connection)
    XCTAssertEqual(harness.failed.map(\.waiter), [1])
    XCTAssertEqual(harness.pool.connections.count(.opening), 0)
  }

  // MARK: Adoption

  func testAPoolOpensNothingBeforeItHasAdopted() {
    for version in [HTTPConnectionInfo.Version.http1, .http2] {
      var pool = PoolHarness.Pool(
        limits: .init(http1Connections: 2, http2Connections: 2, waitingCalls: 5, idleTimeout: .zero),
        version: version
      )
      guard case .waiting(_, let actions) = pool.enqueue(1) else { return XCTFail("refused") }
      XCTAssertTrue(actions.isEmpty)
      let (_, adoption) = pool.adopt(7, version: version, streams: 1, now: .zero)
      guard case .start(1, on: 7, _)? = adoption.first(where: { if case .start = $0 { true } else { false } })
      else {
        return XCTFail("not started")
      }
      // The next one opens another connection beside the first.
      guard case .waiting(_, let more) = pool.enqueue(2) else { return XCTFail("refused") }
      guard case .open? = more.first else { return XCTFail("not opened") }
    }
  }

  /// HTTP/2: the last connection that is gone loses the pool. HTTP/1.1: servers close idle connections all the time.
  func testWhenAPoolIsLost() {
    for version in [HTTPConnectionInfo.Version.http1, .http2] {
      var pool = PoolHarness.Pool(
        limits: .init(http1Connections: 2, http2Connections: 2, waitingCalls: 5, idleTimeout: .seconds(1)),
        version: nil
      )
      let (id, _) = pool.adopt(7, version: version, streams: 1, now: .zero)
      let isLost = pool.connectionWillClose(id).contains { if case .lost = $0 { true } else { false } }
      XCTAssertEqual(isLost, version == .http2)
      _ = pool.connectionClosed(id, error: ConnectError(code: .unavailable))
      guard case .waiting(_, let actions) = pool.enqueue(1) else { return XCTFail("refused") }
      XCTAssertEqual(actions.count, version == .http1 ? 1 : 0)
      guard case .open(let attempt)? = actions.first else { continue }
      let failure = ConnectError(code: .unavailable, message: "refused")
      guard case .lost(let error?)? = pool.connectionClosed(attempt, error: failure).first else {
        return XCTFail("not lost")
      }
      XCTAssertEqual(error.message, "refused")
      XCTAssertEqual(pool.takeWaiting(), [1])
    }
  }

  func testTheLastHTTP2ConnectionMayBeKept() {
    for keepsLast in [false, true] {
      let limits = PoolHarness.Pool.Limits(
        http1Connections: 2,
        http2Connections: 2,
        waitingCalls: 5,
        idleTimeout: .seconds(1),
        keepsLast: keepsLast
      )
      var pool = PoolHarness.Pool(limits: limits, version: nil)
      _ = pool.adopt(7, version: .http2, streams: 1, now: .zero)
      let actions = pool.checkIdle(now: .seconds(5))
      XCTAssertEqual(actions.contains { if case .lost(nil) = $0 { true } else { false } }, !keepsLast)
      XCTAssertEqual(pool.connections.count(.open), keepsLast ? 1 : 0)
    }
  }

  // MARK: Closing

  func testDrainingConnectionIsReplacedForThoseWhoWait() {
    var harness = PoolHarness(http2: 1, version: .http2)
    harness.wait(1)
    harness.wait(2)
    let first = harness.succeed(.http2, streams: 1)
    XCTAssertTrue(harness.attempts.isEmpty)
    harness.willClose(first)
    XCTAssertEqual(harness.attempts.count, 1)
    XCTAssertNil(harness.pool.leaseConnection())
    harness.streamCloses(on: first)
    XCTAssertEqual(harness.started.map(\.waiter), [1])
    let second = harness.succeed(.http2, streams: 1)
    XCTAssertEqual(harness.started.map(\.connection), [first, second])
    harness.closes(first)
    harness.closes(second)
    XCTAssertEqual(harness.pool.connections.count(.open), 0)
  }

  func testLostConnectionIsReplacedForThoseWhoWait() {
    var harness = PoolHarness(http1: 1, version: .http1)
    harness.wait(1)
    harness.wait(2)
    let first = harness.succeed(.http1)
    harness.closes(first)
    XCTAssertEqual(harness.attempts.count, 1)
    XCTAssertTrue(harness.failed.isEmpty)
    harness.succeed(.http1)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2])
  }

  func testLateEventsOfAGoneConnectionAreIgnored() {
    var harness = PoolHarness(version: .http1)
    harness.wait(1)
    let id = harness.attempts[0]
    let first = harness.succeed(.http1)
    harness.closes(first)
    harness.wait(2)
    let second = harness.succeed(.http1)
    harness.run(harness.pool.streamClosed(id, now: .zero))
    harness.run(harness.pool.connectionWillClose(id))
    harness.run(harness.pool.connection(id, canServe: 9, now: .zero))
    harness.run(harness.pool.connectionClosed(id, error: ConnectError(code: .unavailable)))
    XCTAssertNil(harness.pool.leaseConnection())
    harness.streamCloses(on: second)
    XCTAssertEqual(harness.pool.leaseConnection(), second)
  }

  // MARK: Idleness

  func testIdleConnectionsAreClosed() {
    var harness = PoolHarness(idle: .seconds(60), version: .http1)
    harness.wait(1)
    harness.wait(2)
    let first = harness.succeed(.http1)
    let second = harness.succeed(.http1)
    XCTAssertEqual(harness.idleChecks, [.seconds(60)])
    harness.now = .seconds(10)
    harness.streamCloses(on: first)
    harness.now = .seconds(20)
    harness.streamCloses(on: second)
    // A look before that asks for no second check.
    let checks = harness.idleChecks
    harness.run(harness.pool.checkIdle(now: .seconds(1), isDue: false))
    XCTAssertEqual(harness.idleChecks, checks)
    harness.checkIdle(at: .seconds(60))
    XCTAssertEqual(harness.drained, [])
    XCTAssertEqual(harness.idleChecks, [.seconds(60), .seconds(10)])
    harness.checkIdle(at: .seconds(70))
    XCTAssertEqual(harness.drained, [first])
    XCTAssertEqual(harness.idleChecks, [.seconds(60), .seconds(10), .seconds(10)])
    XCTAssertEqual(harness.pool.leaseConnection(), second)
    XCTAssertNil(harness.pool.leaseConnection())
    harness.checkIdle(at: .seconds(80))
    XCTAssertEqual(harness.drained, [first])
    // Nothing is idle, so nothing is checked until something is.
    XCTAssertEqual(harness.idleChecks.count, 3)
    harness.now = .seconds(90)
    harness.streamCloses(on: second)
    XCTAssertEqual(harness.idleChecks.last, .seconds(60))
  }

  func testCloseWhenIdleStillServes() {
    var harness = PoolHarness(version: .http2)
    harness.wait(1)
    let first = harness.succeed(.http2, streams: 5)
    harness.run(harness.pool.closeWhenIdle())
    XCTAssertEqual(harness.drained, [])
    XCTAssertEqual(harness.pool.leaseConnection(), first)
    harness.streamCloses(on: first)
    XCTAssertEqual(harness.drained, [])
    harness.streamCloses(on: first)
    XCTAssertEqual(harness.drained, [first])
    harness.wait(2)
    let second = harness.succeed(.http2, streams: 5)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2])
    harness.streamCloses(on: second)
    XCTAssertEqual(harness.drained, [first, second])
  }

  // MARK: Shutdown

  func testShutdownOfAnEmptyPoolFinishesOnce() {
    var harness = PoolHarness(version: .http2)
    harness.run(harness.pool.shutDown())
    harness.run(harness.pool.shutDown())
    harness.run(harness.pool.forceShutDown(ConnectError(code: .unavailable)))
    XCTAssertEqual(harness.finishedCount, 1)
    guard case .shutDown = harness.pool.enqueue(1) else { return XCTFail("accepted") }
  }

  func testShutdownServesThoseWhoWaitThenDrains() {
    var harness = PoolHarness(http1: 1, version: .http1)
    harness.wait(1)
    harness.wait(2)
    let connection = harness.succeed(.http1)
    harness.run(harness.pool.shutDown())
    XCTAssertEqual(harness.drained, [])
    harness.streamCloses(on: connection)
    XCTAssertEqual(harness.started.map(\.waiter), [1, 2])
    XCTAssertNil(harness.pool.leaseConnection())
    harness.streamCloses(on: connection)
    XCTAssertEqual(harness.drained, [connection])
    XCTAssertEqual(harness.finishedCount, 0)
    harness.closes(connection)
    XCTAssertEqual(harness.finishedCount, 1)
  }

  func testShutdownGivesUpAttemptsThatNobodyWaitsFor() {
    var harness = PoolHarness(version: .http1)
    guard let handle = harness.wait(1) else { return }
    harness.run(harness.pool.shutDown())
    XCTAssertEqual(harness.abandoned.count, 0)
    harness.run(harness.pool.cancel(handle))
    XCTAssertEqual(harness.abandoned.count, 1)
    XCTAssertEqual(harness.finishedCount, 1)
  }

  func testForcedShutdownFailsAndClosesEverything() {
    var harness = PoolHarness(http1: 2, version: .http1)
    harness.wait(1)
    harness.wait(2)
    let connection = harness.succeed(.http1)
    harness.run(harness.pool.shutDown())
    harness.run(harness.pool.forceShutDown(ConnectError(code: .unavailable, message: "time is up")))
    XCTAssertEqual(harness.failed.map(\.waiter), [2])
    XCTAssertEqual(harness.failed.map(\.error.message), ["time is up"])
    XCTAssertEqual(harness.closed, [connection])
    XCTAssertEqual(harness.abandoned.count, 1)
    XCTAssertEqual(harness.finishedCount, 0)
    harness.closes(connection)
    XCTAssertEqual(harness.finishedCount, 1)
  }
}
