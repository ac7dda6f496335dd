import Connect
import XCTest

@testable import ConnectChannels

/// Servers that renew a connection after a number of streams: what comes later is not sent to be refused.
final class StreamQuotaTests: XCTestCase {
  private typealias Pool = PoolHarness.Pool

  func testTwoInARowAreNeeded() {
    var quota = StreamQuota()
    XCTAssertNil(quota.value)
    quota.connectionWasRenewed(after: 10)
    XCTAssertNil(quota.value)
    quota.connectionWasRenewed(after: 10)
    XCTAssertEqual(quota.value, 10)
    quota.connectionWasRenewed(after: 10)
    XCTAssertEqual(quota.value, 10)
    quota.connectionWasRenewed(after: 17)
    XCTAssertNil(quota.value)
    quota.connectionWasRenewed(after: 17)
    XCTAssertEqual(quota.value, 17)
    quota.connectionWasRenewed(after: nil)
    XCTAssertNil(quota.value)
    quota.connectionWasRenewed(after: nil)
    XCTAssertNil(quota.value)
    quota.connectionWasRenewed(after: 9)
    quota.wasWrong()
    quota.connectionWasRenewed(after: 9)
    XCTAssertNil(quota.value)
    // Connections that were idle.
    for count in 0...3 {
      for _ in 0..<2 { quota.connectionWasRenewed(after: count) }
      XCTAssertNil(quota.value)
    }
  }

  /// A pool that knows of a quota of 4, with a new connection.
  private func pool(connections: Int) -> (Pool, Pool.ConnectionID) {
    var pool = Pool(
      limits: .init(
        http1Connections: 2,
        http2Connections: connections,
        waitingCalls: 5,
        idleTimeout: .seconds(1)
      ),
      version: nil
    )
    for _ in 0..<2 {
      let (id, _) = pool.adopt(6, version: .http2, streams: 100, now: .zero)
      _ = pool.connectionWillClose(id, after: 4)
    }
    let (id, _) = pool.adopt(7, version: .http2, streams: 100, now: .zero)
    for _ in 0..<4 { XCTAssertEqual(pool.leaseConnection(), 7) }
    return (pool, id)
  }

  private func started(_ actions: [Pool.Action]) -> [Int] {
    actions.compactMap { if case .start(let waiter, _, _) = $0 { waiter } else { nil } }
  }

  private func opened(_ actions: [Pool.Action]) -> Pool.ConnectionID? {
    for case .open(let id) in actions { return id }
    return nil
  }

  func testAnotherConnectionTakesWhatWouldBeRefused() {
    var (pool, first) = self.pool(connections: 2)
    XCTAssertNil(pool.leaseConnection(), "it has had all that the server takes")
    guard case .waiting(_, let actions) = pool.enqueue(1), let second = self.opened(actions) else {
      return XCTFail("no attempt")
    }
    // The server renews the first one as expected.
    _ = pool.connectionWillClose(first, after: 4)
    _ = pool.connectionEstablished(second, 8, version: .http2)
    XCTAssertEqual(self.started(pool.connection(second, canServe: 100, now: .zero)), [1])
    for _ in 0..<3 { XCTAssertEqual(pool.leaseConnection(), 8) }
    XCTAssertNil(pool.leaseConnection())
  }

  /// A connection that has become idle was not renewed: there is no quota any more.
  func testAServerWithoutAQuotaAnyMore() {
    var (pool, first) = self.pool(connections: 2)
    guard case .waiting(_, let actions) = pool.enqueue(1) else { return XCTFail("refused") }
    XCTAssertNotNil(self.opened(actions))
    for _ in 0..<3 { XCTAssertEqual(self.started(pool.streamClosed(first, now: .zero)), []) }
    XCTAssertEqual(self.started(pool.streamClosed(first, now: .zero)), [1])
    XCTAssertEqual(pool.leaseConnection(), 7)
  }

  /// Nor where other connections cannot be opened.
  func testAFailedAttempt() {
    var (pool, _) = self.pool(connections: 2)
    guard case .waiting(_, let actions) = pool.enqueue(1), let second = self.opened(actions) else {
      return XCTFail("no attempt")
    }
    let failed = pool.connectionClosed(second, error: ConnectError(code: .unavailable))
    XCTAssertEqual(self.started(failed), [1])
  }

  /// Calls do not wait for ever where no other connection may be opened.
  func testAsManyConnectionsAsAllowed() {
    var (pool, _) = self.pool(connections: 1)
    XCTAssertNil(pool.leaseConnection())
    guard case .waiting(_, let actions) = pool.enqueue(1) else { return XCTFail("refused") }
    XCTAssertEqual(self.started(actions), [1])
    XCTAssertEqual(pool.leaseConnection(), 7)
  }
}
