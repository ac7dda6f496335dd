internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// A connection on which a call has timed out is tested with a ping, if nothing at all has come meanwhile.
final class HTTP2PeerTestTests: XCTestCase {
  private func expire(_ peer: HTTP2TestPeer) throws {
    let stream = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    stream.expire()
  }

  func testAnAnswerLetsTheConnectionGoOn() throws {
    let peer = try HTTP2TestPeer()
    try self.expire(peer)
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.ping, .reset])
    XCTAssertTrue(peer.delegate.events.contains(.suspect))
    XCTAssertFalse(peer.delegate.events.contains(.alive))
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(30))
    try peer.send(.ping(frames.first?.payload ?? [], ack: true))
    XCTAssertEqual(peer.delegate.events.suffix(2), [.roundTrip(.milliseconds(30)), .alive])
    // An answer to no ping says nothing.
    try peer.send(.ping([0, 0, 0, 0, 0, 0, 0, 1], ack: true))
    XCTAssertEqual(peer.delegate.events.last, .alive)
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(100))
    XCTAssertTrue(peer.channel.isActive)
  }

  func testSilenceEndsTheConnection() throws {
    let peer = try HTTP2TestPeer()
    let other = RecordingHandler()
    _ = peer.startUnary(other)
    try self.expire(peer)
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(19))
    XCTAssertTrue(peer.channel.isActive)
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    XCTAssertFalse(peer.channel.isActive)
    XCTAssertEqual(other.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
  }

  /// Servers end connections that ping again and again: there is one test until a response has come, or five minutes.
  func testPingsAreFew() throws {
    let peer = try HTTP2TestPeer()
    try self.expire(peer)
    let first = try peer.sent()
    try peer.send(.ping(first.first?.payload ?? [], ack: true))
    for _ in 0..<3 {
      try self.expire(peer)
      XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
    }
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(301))
    try self.expire(peer)
    XCTAssertEqual(try peer.sent().map(\.kind), [.ping, .reset])
  }

  /// What has come since the call began shows that the peer is there, and so does a call that is given up for other reasons
  /// than time.
  func testWhatIsNoReason() throws {
    let peer = try HTTP2TestPeer()
    let stream = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    try peer.send(.ping())
    _ = try peer.sent()
    stream.expire()
    XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
    let cancelled = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    cancelled.cancel()
    XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
    XCTAssertFalse(peer.delegate.events.contains(.suspect))
  }
}
