import NIOCore
import XCTest

@testable import ConnectNIO

/// The rules of gRFC A8, without a connection.
final class HTTP2KeepaliveTests: XCTestCase {
  private func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

  func testTheIntervalCountsFromTheLastByte() {
    var keepalive = HTTP2Keepalive(.init(interval: .seconds(30), timeout: .seconds(10)), now: self.time(0))
    XCTAssertEqual(keepalive.firstLook, self.time(30))
    keepalive.received(now: self.time(29))
    XCTAssertEqual(keepalive.look(now: self.time(30), hasStreams: true), .look(self.time(59)))
    XCTAssertEqual(keepalive.look(now: self.time(59), hasStreams: true), .ping(thenLook: self.time(69)))
    keepalive.received(now: self.time(60))
    XCTAssertEqual(keepalive.look(now: self.time(69), hasStreams: true), .look(self.time(90)))
    XCTAssertEqual(keepalive.look(now: self.time(90), hasStreams: true), .ping(thenLook: self.time(100)))
    XCTAssertEqual(keepalive.look(now: self.time(100), hasStreams: true), .giveUp)
  }

  func testAStreamAfterALongSilencePingsFirst() {
    var keepalive = HTTP2Keepalive(.init(interval: .seconds(30)), now: self.time(0))
    XCTAssertEqual(keepalive.look(now: self.time(30), hasStreams: false), .rest)
    XCTAssertTrue(keepalive.isResting)
    XCTAssertEqual(keepalive.wake(now: self.time(500)), .ping(thenLook: self.time(520)))
    XCTAssertFalse(keepalive.isResting)
  }

  func testWithoutStreamsWhereAllowed() {
    let configuration = HTTP2Configuration.Keepalive(interval: .seconds(30), pingsWithoutStreams: true)
    var keepalive = HTTP2Keepalive(configuration, now: self.time(0))
    XCTAssertEqual(keepalive.look(now: self.time(30), hasStreams: false), .ping(thenLook: self.time(50)))
  }

  func testTheFloorAndTheSlowdown() {
    let keepalive = HTTP2Keepalive(.init(interval: .milliseconds(1)), now: self.time(0))
    XCTAssertEqual(keepalive.interval, .seconds(10))
    let slow = HTTP2Keepalive(.init(interval: .seconds(20)), slowdown: 4, now: self.time(0))
    XCTAssertEqual(slow.interval, .seconds(80))
  }
}
