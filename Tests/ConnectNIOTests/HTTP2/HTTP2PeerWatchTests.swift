internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// A connection on which a call was given up is tested with a ping, if nothing at all has come meanwhile. So is one on which
/// nothing comes for a while, though there are calls.
final class HTTP2PeerWatchTests: XCTestCase {
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

  /// NIO's server, for one, leaves the closing to its user.
  func testAServerThatGivesUpIsNotWaitedFor() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.goAway(last: .max, .protocolError))
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1999))
    // What still comes is waited for.
    try peer.send(.ping([0, 0, 0, 0, 0, 0, 0, 1]))
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(2000))
    XCTAssertTrue(peer.channel.isActive)
    peer.channel.embeddedEventLoop.advanceTime(by: .milliseconds(2000))
    XCTAssertFalse(peer.channel.isActive)
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
  }

  /// A server that shuts down in order may take its time.
  func testAServerThatShutsDownIsWaitedFor() throws {
    let peer = try HTTP2TestPeer()
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    try peer.send(.goAway(last: .max))
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(10))
    XCTAssertTrue(peer.channel.isActive)
  }

  /// Servers end connections that ping again and again: until a response has come, there are two tests, a second apart, and
  /// then one in five minutes.
  func testPingsAreFew() throws {
    let peer = try HTTP2TestPeer()
    func expectTest(after pause: TimeAmount) throws {
      peer.channel.embeddedEventLoop.advanceTime(by: pause - .nanoseconds(1))
      for _ in 0..<3 {
        try self.expire(peer)
        XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
      }
      peer.channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
      try self.expire(peer)
      let frames = try peer.sent()
      XCTAssertEqual(frames.map(\.kind), [.ping, .reset])
      try peer.send(.ping(frames.first?.payload ?? [], ack: true))
    }
    try self.expire(peer)
    let first = try peer.sent()
    try peer.send(.ping(first.first?.payload ?? [], ack: true))
    try expectTest(after: .seconds(1))
    try expectTest(after: .minutes(5))
    try expectTest(after: .minutes(5))
  }

  /// A server that has answered a test may stop before it has sent a part of a response.
  func testAServerThatStopsAfterItsAnswer() throws {
    let peer = try HTTP2TestPeer()
    try self.expire(peer)
    let first = try peer.sent()
    try peer.send(.ping(first.first?.payload ?? [], ack: true))
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    try self.expire(peer)
    XCTAssertEqual(peer.delegate.events.filter { $0 == .suspect }.count, 2)
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(20))
    XCTAssertFalse(peer.channel.isActive)
  }

  /// A call that is cancelled may have run out of patience.
  func testCancelledCallsCountAsExpiredOnes() throws {
    let peer = try HTTP2TestPeer()
    let stream = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    stream.cancel()
    XCTAssertEqual(try peer.sent().map(\.kind), [.ping, .reset])
    XCTAssertTrue(peer.delegate.events.contains(.suspect))
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(20))
    XCTAssertFalse(peer.channel.isActive)
  }

  /// What has come since the call began shows that the peer is there. A call that was cancelled before it was sent says
  /// nothing.
  func testWhatIsNoReason() throws {
    let peer = try HTTP2TestPeer()
    for isExpired in [true, false] {
      let stream = peer.startUnary(RecordingHandler())
      _ = try peer.sent()
      try peer.send(.ping())
      _ = try peer.sent()
      if isExpired { stream.expire() } else { stream.cancel() }
      XCTAssertEqual(try peer.sent().map(\.kind), [.reset])
    }
    let unsent = peer.startUnary(RecordingHandler())
    unsent.cancel()
    XCTAssertEqual(try peer.sent().map(\.kind), [])
    XCTAssertFalse(peer.delegate.events.contains(.suspect))
  }

  // MARK: Silence

  /// With the default limit of 20 s, a server that has stopped loses its calls after 20 s more.
  func testAServerThatHasStopped() throws {
    let peer = try HTTP2TestPeer()
    let loop = peer.channel.embeddedEventLoop
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    loop.advanceTime(by: .milliseconds(19_999))
    XCTAssertEqual(try peer.sent(), [])
    loop.advanceTime(by: .milliseconds(1))
    XCTAssertEqual(try peer.sent().map(\.kind), [.ping])
    XCTAssertTrue(peer.delegate.events.contains(.suspect))
    loop.advanceTime(by: .seconds(20))
    XCTAssertFalse(peer.channel.isActive)
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(
      handler.failure?.error.message,
      "\(peer.connection.state.peer) sent nothing while it had calls to answer, and did not answer a ping within 20.0 seconds"
    )
  }

  /// A stream on which nothing happens is left alone, with as few pings as servers allow by default.
  func testASilentStreamOfAServerThatIsThere() throws {
    let peer = try HTTP2TestPeer()
    let loop = peer.channel.embeddedEventLoop
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    var pings: [Int] = []
    for second in 1...1_000 {
      loop.advanceTime(by: .seconds(1))
      for frame in try peer.sent() where frame.kind == .ping {
        pings.append(second)
        try peer.send(.ping(frame.payload, ack: true))
      }
    }
    XCTAssertTrue(peer.channel.isActive)
    XCTAssertEqual(pings, [20, 320, 620, 920])
    // A part of a response has come: the next silence is noticed as the first one was.
    try peer.send(.headers(1))
    loop.advanceTime(by: .seconds(31))
    XCTAssertEqual(try peer.sent().map(\.kind), [.ping])
  }

  /// There is no timer without calls, and none that outlives them for long.
  func testConnectionsWithoutCallsAreLeftAlone() throws {
    let peer = try HTTP2TestPeer()
    let loop = peer.channel.embeddedEventLoop
    loop.advanceTime(by: .hours(1))
    XCTAssertTrue(peer.connection.peerWatch.test.isResting)
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    XCTAssertFalse(peer.connection.peerWatch.test.isResting)
    try peer.send(.headers(1, end: true))
    loop.advanceTime(by: .seconds(10))
    XCTAssertTrue(peer.connection.peerWatch.test.isResting)
    loop.advanceTime(by: .hours(1))
    XCTAssertEqual(try peer.sent(), [])
  }

  /// A server that goes away and stops has calls, too.
  func testADrainingConnection() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.goAway(last: 1))
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(31))
    XCTAssertEqual(try peer.sent().map(\.kind), [.ping])
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(20))
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: false))
  }

  func testWithoutALimit() throws {
    let peer = try HTTP2TestPeer(HTTP2Configuration(silenceLimit: nil))
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .hours(1))
    XCTAssertEqual(try peer.sent(), [])
  }

  /// The first silence is noticed as without keepalive. After that, pings are no more than the keepalive's, which the server has
  /// to allow.
  func testBesideKeepalive() throws {
    let peer = try HTTP2TestPeer(HTTP2Configuration(keepalive: .init(interval: .seconds(300))))
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    var pings: [Int] = []
    for second in 1...1_000 {
      peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
      for frame in try peer.sent() where frame.kind == .ping {
        pings.append(second)
        try peer.send(.ping(frame.payload, ack: true))
      }
    }
    XCTAssertEqual(pings, [20, 320, 620, 920])
  }
}
