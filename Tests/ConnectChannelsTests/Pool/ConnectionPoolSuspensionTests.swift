import Connect
import XCTest

@testable import ConnectChannels

/// Connections that may be dead, since calls on them have timed out in silence.
final class ConnectionPoolSuspensionTests: XCTestCase {
  private typealias Pool = PoolHarness.Pool

  private func pool(keepsLast: Bool) -> (Pool, Pool.ConnectionID) {
    var pool = Pool(
      limits: .init(
        http1Connections: 2,
        http2Connections: 2,
        waitingCalls: 5,
        idleTimeout: .seconds(1),
        keepsLast: keepsLast
      ),
      version: nil
    )
    let (id, _) = pool.adopt(7, version: .http2, streams: 100, now: .zero)
    return (pool, id)
  }

  private func attempt(_ actions: [Pool.Action]) -> Pool.ConnectionID? {
    for case .open(let id) in actions { return id }
    return nil
  }

  /// The race opens another connection at once. A call that waits here has one opened, too.
  func testAnotherConnectionIsOpened() {
    for keepsLast in [false, true] {
      var (pool, first) = self.pool(keepsLast: keepsLast)
      pool.suspend(first)
      XCTAssertTrue(pool.isSuspect)
      XCTAssertNil(pool.leaseConnection())
      guard case .waiting(_, let actions) = pool.enqueue(1) else { return XCTFail("refused") }
      guard let second = self.attempt(actions) else { return XCTFail("no attempt") }
      _ = pool.connectionEstablished(second, 8, version: .http2)
      let started = pool.connection(second, canServe: 100, now: .zero)
      XCTAssertTrue(started.contains { if case .start(1, on: 8, _) = $0 { true } else { false } })
      XCTAssertFalse(pool.isSuspect)
    }
  }

  /// Calls that waited for its streams wait for another connection, but not at once.
  func testACallThatWaitsAlready() {
    var (pool, first) = self.pool(keepsLast: false)
    for _ in 0..<100 { XCTAssertEqual(pool.leaseConnection(), 7) }
    guard case .waiting(_, let opened) = pool.enqueue(1), let second = self.attempt(opened) else {
      return XCTFail("no attempt")
    }
    _ = pool.connectionEstablished(second, 8, version: .http2)
    _ = pool.connection(second, canServe: 1, now: .zero)
    guard case .waiting(_, let actions) = pool.enqueue(2) else { return XCTFail("refused") }
    XCTAssertNil(self.attempt(actions), "there are as many as allowed")
    pool.suspend(first)
    XCTAssertNotNil(self.attempt(pool.openForWaiting()))
  }

  func testItTakesStreamsOnceItHasAnswered() {
    var (pool, first) = self.pool(keepsLast: true)
    pool.suspend(first)
    _ = pool.resume(first, now: .zero)
    XCTAssertFalse(pool.isSuspect)
    XCTAssertEqual(pool.leaseConnection(), 7)
  }

  /// A server that did not answer a ping may not answer an attempt to connect either: nobody waits for that.
  func testAttemptsEndWithAConnectionThatDoesNotAnswer() {
    for closesFirst in [false, true] {
      var (pool, first) = self.pool(keepsLast: true)
      pool.suspend(first)
      guard case .waiting(_, let opened) = pool.enqueue(1), let attempt = self.attempt(opened) else {
        return XCTFail("no attempt")
      }
      let error = ConnectError(code: .unavailable, message: "no answer")
      let actions = closesFirst ? pool.connectionClosed(first, error: error) : pool.connectionWillClose(first)
      XCTAssertTrue(actions.contains { if case .abandon(attempt, _) = $0 { true } else { false } })
      XCTAssertTrue(actions.contains { if case .lost = $0 { true } else { false } })
      XCTAssertEqual(pool.connections.count(.opening), 0)
    }
  }
}
