import Connect
import XCTest

@testable import ConnectChannels

/// A connection of a better version that takes the place of all others.
final class ConnectionPoolReplacementTests: XCTestCase {
  private func replace(_ harness: inout PoolHarness, streams: Int = 10) -> PoolHarness.Pool.ConnectionID {
    let (id, actions) = harness.pool.replaceAll(
      with: 7,
      version: .http3,
      streams: streams,
      now: harness.now
    )
    harness.run(actions)
    return id
  }

  func testOpenConnectionsAreDrained() {
    var harness = PoolHarness(version: .http1)
    harness.wait(1)
    harness.wait(2)
    let (first, second) = (harness.succeed(.http1), harness.succeed(.http1))
    harness.streamCloses(on: second)
    _ = self.replace(&harness)
    XCTAssertEqual(Set(harness.drained), [first, second])
    XCTAssertEqual(harness.losses.count, 0)
    XCTAssertEqual(harness.pool.leaseConnection(), 7)
    // The call under way ends in peace.
    harness.streamCloses(on: first)
    harness.closes(first)
    harness.closes(second)
    XCTAssertEqual(harness.losses.count, 0)
    XCTAssertEqual(harness.pool.leaseConnection(), 7)
  }

  func testAttemptsAreGivenUpAndTheirCallsStart() {
    var harness = PoolHarness(http1: 4, version: .http1)
    harness.wait(1)
    _ = harness.succeed(.http1)
    for call in 2...4 { harness.wait(call) }
    XCTAssertEqual(harness.attempts.count, 3)
    let id = self.replace(&harness, streams: 2)
    XCTAssertEqual(harness.abandoned.count, 3)
    XCTAssertEqual(harness.started.filter { $0.connection == 7 }.map(\.waiter), [2, 3])
    // The last one needs another connection.
    XCTAssertEqual(harness.attempts.count, 1)
    harness.run(harness.pool.streamClosed(id, now: harness.now))
    XCTAssertEqual(harness.started.last?.waiter, 4)
  }

  /// The limit is for connections that take calls: the new one is not too many.
  func testLimit() {
    var harness = PoolHarness(http2: 1, version: .http2)
    harness.wait(1)
    let old = harness.succeed(.http2, streams: 5)
    _ = self.replace(&harness)
    XCTAssertEqual(harness.drained, [old])
    XCTAssertEqual(harness.pool.leaseConnection(), 7)
  }

  func testASuspectConnectionDoesNotComeBack() {
    var harness = PoolHarness(version: .http2)
    harness.wait(1)
    let old = harness.succeed(.http2, streams: 5)
    guard let id = harness.ids[old] else { return XCTFail("no connection") }
    harness.pool.suspend(id)
    _ = self.replace(&harness)
    XCTAssertEqual(harness.drained, [])
    harness.run(harness.pool.resume(id, now: harness.now))
    XCTAssertEqual(harness.drained, [old])
    XCTAssertEqual(harness.pool.leaseConnection(), 7)
  }

  func testShutdown() {
    var harness = PoolHarness(version: .http2)
    harness.wait(1)
    let old = harness.succeed(.http2, streams: 5)
    let id = self.replace(&harness)
    harness.run(harness.pool.shutDown())
    XCTAssertEqual(harness.drained, [old, 7])
    harness.run(harness.pool.connectionClosed(id, error: .connectionReplaced))
    XCTAssertEqual(harness.finishedCount, 0)
    harness.closes(old)
    XCTAssertEqual(harness.finishedCount, 1)
  }
}
