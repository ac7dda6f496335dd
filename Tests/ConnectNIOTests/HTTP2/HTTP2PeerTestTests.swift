internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// A connection on which a call was given up without a sign of the peer serves no other call before the peer has answered.
final class HTTP2PeerTestTests: XCTestCase {
  /// Starts a call, and gives it up after a silence.
  private func giveUp(_ peer: HTTP2TestPeer, after silence: TimeAmount = .milliseconds(100)) throws {
    let stream = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: silence)
    stream.cancel()
  }

  func testAPeerThatAnswers() throws {
    let peer = try HTTP2TestPeer()
    try self.giveUp(peer)
    XCTAssertEqual(try peer.sent().map(\.kind), [.reset, .ping])
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .canServe(0), .closedStream])
    try peer.send(.ping(ack: true))
    XCTAssertEqual(peer.delegate.events.last, .canServe(100))
    // The timer is gone.
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(60))
    XCTAssertTrue(peer.channel.isActive)
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(3), .data(3, "ok", end: true))
    XCTAssertEqual(handler.events.last, .end([:]))
  }

  func testAnythingIsAnAnswer() throws {
    let peer = try HTTP2TestPeer()
    let other = RecordingHandler()
    _ = peer.startUnary(other)
    try self.giveUp(peer)
    _ = try peer.sent()
    try peer.send(.settings(maxConcurrentStreams: 7))
    XCTAssertEqual(peer.delegate.events.last, .canServe(7))
    XCTAssertEqual(peer.delegate.events.count { $0 == .canServe(0) }, 1)
    XCTAssertEqual(other.events, [.started])
  }

  func testAPeerThatIsGone() throws {
    let peer = try HTTP2TestPeer()
    let other = RecordingHandler()
    _ = peer.startUnary(other)
    try self.giveUp(peer)
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(19_999))
    XCTAssertEqual(other.events, [.started])
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
    XCTAssertEqual(other.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(
      other.failure?.error.message,
      "nothing came from http://demo.example:8080 after a call was given up, nor did it answer a ping within 20.0 seconds"
    )
    peer.run()
    XCTAssertFalse(peer.channel.isActive)
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
  }

  func testTheTimeIsThatOfTheKeepalive() throws {
    let peer = try HTTP2TestPeer(
      HTTP2Configuration(keepalive: .init(interval: .seconds(3600), timeout: .milliseconds(300)))
    )
    try self.giveUp(peer)
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(300))
    peer.run()
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
  }

  func testOneTestAtATime() throws {
    let peer = try HTTP2TestPeer()
    let streams = (0..<3).map { _ in peer.startUnary(RecordingHandler()) }
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    for stream in streams { stream.cancel() }
    XCTAssertEqual(try peer.sent().count { $0.kind == .ping }, 1)
    XCTAssertEqual(peer.delegate.events.count { $0 == .canServe(0) }, 1)
  }

  // MARK: No test

  func testACallThatIsGivenUpAtOnceSaysNothing() throws {
    let peer = try HTTP2TestPeer()
    try self.giveUp(peer, after: .milliseconds(99))
    XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .closedStream])
  }

  /// Each call is shorter than what says something, but all of them together are not.
  func testShortCallsAddUp() throws {
    let peer = try HTTP2TestPeer()
    for _ in 0..<3 { try self.giveUp(peer, after: .milliseconds(40)) }
    XCTAssertEqual(try peer.sent().count { $0.kind == .ping }, 1)
  }

  func testAPeerThatHasAnsweredSince() throws {
    let peer = try HTTP2TestPeer()
    let stream = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(90))
    try peer.send(.ping())
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    stream.cancel()
    XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
  }

  func testARequestThatHasNotLeftSaysNothing() throws {
    let peer = try HTTP2TestPeer()
    peer.setWritable(false)
    let stream = peer.startUnary(RecordingHandler())
    peer.run()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    stream.cancel()
    peer.setWritable(true)
    XCTAssertEqual(try peer.sent().count { $0.kind == .ping }, 0)
  }

  func testADrainingConnectionIsNotTested() throws {
    let peer = try HTTP2TestPeer()
    let other = RecordingHandler()
    _ = peer.startUnary(other)
    let stream = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    peer.connection.drain()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    stream.cancel()
    XCTAssertEqual(try peer.sent().count { $0.kind == .ping }, 0)
    XCTAssertFalse(peer.delegate.events.contains(.canServe(0)))
  }

  func testAConnectionThatCloses() throws {
    let peer = try HTTP2TestPeer()
    try self.giveUp(peer)
    _ = try peer.sent()
    peer.connection.close(failing: ConnectError(code: .aborted))
    peer.run()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(60))
    XCTAssertEqual(peer.delegate.events.count { if case .closed = $0 { true } else { false } }, 1)
    XCTAssertEqual(peer.delegate.error?.code, .aborted)
  }
}
