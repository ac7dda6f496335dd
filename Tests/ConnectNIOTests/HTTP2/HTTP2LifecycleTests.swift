internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// How connections end, and what becomes of their streams.
final class HTTP2LifecycleTests: XCTestCase {
  func testGoAwaySplitsTheStreams() throws {
    let peer = try HTTP2TestPeer()
    let below = RecordingHandler()
    let above = RecordingHandler()
    _ = peer.startUnary(below)
    _ = peer.startUnary(above)
    _ = try peer.sent()
    try peer.send(.goAway(last: 1, .noError, debug: "restart"))
    XCTAssertEqual(above.events, [.started, .failed(.unavailable, isUnprocessed: true)])
    XCTAssertEqual(
      above.failure?.error.message,
      "the server is going away and did not process the request (GOAWAY, NO_ERROR: restart)"
    )
    XCTAssertEqual(above.failure?.keepsTransparentRetry, true, "the server serves the other stream")
    XCTAssertTrue(peer.connection.hasServed)
    XCTAssertEqual(below.events, [.started])
    XCTAssertEqual(
      peer.delegate.events,
      [.canServe(100), .willClose, .closedStream]
    )
    let late = RecordingHandler()
    _ = peer.startUnary(late)
    XCTAssertEqual(late.events, [])
    XCTAssertEqual(try peer.sent(), [])
    XCTAssertEqual(late.events, [.failed(.unavailable, isUnprocessed: true)])
    try peer.send(.headers(1), .data(1, "ok", end: true))
    XCTAssertEqual(below.events.last, .end([:]))
    peer.run()
    XCTAssertFalse(peer.channel.isActive)
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
    XCTAssertEqual(peer.delegate.events.count { $0 == .willClose }, 1)
    XCTAssertEqual(peer.delegate.closedStreams, 3)
  }

  /// A server that processes nothing gets no more than the one transparent retry.
  func testGoAwayThatServesNothing() throws {
    let ends: [(last: Int32, HTTP2ErrorCode)] = [(0, .noError), (1, .enhanceYourCalm)]
    for (last, error) in ends {
      let peer = try HTTP2TestPeer()
      let handlers = [RecordingHandler(), RecordingHandler()]
      for handler in handlers { _ = peer.startUnary(handler) }
      _ = try peer.sent()
      try peer.send(.goAway(last: last, error))
      XCTAssertEqual(handlers[1].failure?.isUnprocessed, true)
      XCTAssertEqual(handlers[1].failure?.keepsTransparentRetry, false)
      XCTAssertFalse(peer.connection.hasServed)
    }
  }

  func testAResponseShowsThatTheServerServes() throws {
    let peer = try HTTP2TestPeer()
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    XCTAssertFalse(peer.connection.hasServed)
    try peer.send(.headers(1))
    XCTAssertTrue(peer.connection.hasServed)
  }

  /// Such a connection never takes calls, which would all fail.
  func testSettingsTogetherWithTheEnd() throws {
    let ends: [(HTTP2Frame, Code?)] = [(.data(0, "x"), .internalError), (.goAway(last: 0), nil)]
    for (end, code) in ends {
      let peer = try HTTP2TestPeer(settings: nil)
      try peer.send(.settings(maxConcurrentStreams: 100), .settingsAck, end)
      peer.run()
      XCTAssertFalse(peer.delegate.events.contains(.canServe(100)))
      XCTAssertEqual(peer.delegate.events.last, .closed(code))
      XCTAssertFalse(peer.channel.isActive)
    }
  }

  func testGoAwayBeforeTheRequestHasLeft() throws {
    let peer = try HTTP2TestPeer()
    peer.setWritable(false)
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    peer.run()
    try peer.send(.goAway(last: 99))
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: true))
  }

  /// The peer breaks the protocol and does not read: nobody has to wait until it does.
  func testBrokenProtocolWhileTheChannelIsNotWritable() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    peer.setWritable(false)
    try peer.send(.data(0, "x"))
    peer.run()
    XCTAssertEqual(handler.events.last, .failed(.internalError, isUnprocessed: false))
    XCTAssertEqual(peer.delegate.events.last, .closed(.internalError))
    XCTAssertFalse(peer.channel.isActive)
  }

  func testGoAwayWithAnErrorAndNoStreams() throws {
    let peer = try HTTP2TestPeer()
    try peer.send(.goAway(last: 0, .enhanceYourCalm, debug: "too_many_pings"))
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .willClose, .closed(.resourceExhausted)])
    XCTAssertEqual(
      peer.delegate.error?.message,
      "\(peer.connection.state.peer) ended the HTTP/2 connection: ENHANCE_YOUR_CALM: too_many_pings"
    )
    XCTAssertFalse(peer.channel.isActive)
  }

  func testTwoStepGoAway() throws {
    let peer = try HTTP2TestPeer()
    let handlers = [RecordingHandler(), RecordingHandler()]
    for handler in handlers { _ = peer.startUnary(handler) }
    _ = try peer.sent()
    try peer.send(.goAway(last: Int32.max))
    XCTAssertEqual(handlers.map(\.events), [[.started], [.started]])
    try peer.send(.goAway(last: 1))
    XCTAssertNil(handlers[0].failure)
    XCTAssertEqual(handlers[1].failure?.isUnprocessed, true)
    XCTAssertEqual(peer.delegate.events.count { $0 == .willClose }, 1)
  }

  func testConnectionLost() throws {
    let peer = try HTTP2TestPeer()
    let written = RecordingHandler()
    let half = RecordingHandler()
    let unwritten = RecordingHandler()
    _ = peer.startUnary(written)
    _ = peer.startUnary(half)
    _ = try peer.sent()
    try peer.send(.headers(3), .data(3, "half"))
    peer.setWritable(false)
    _ = peer.startUnary(unwritten)
    peer.run()
    peer.channel.pipeline.fireChannelInactive()
    XCTAssertEqual(written.events, [.started, .failed(.unavailable, isUnprocessed: false)])
    XCTAssertEqual(half.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(unwritten.events, [.started, .failed(.unavailable, isUnprocessed: true)])
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
    XCTAssertEqual(peer.delegate.closedStreams, 3)
    let late = RecordingHandler()
    _ = peer.startUnary(late)
    XCTAssertEqual(late.events, [])
    peer.run()
    XCTAssertEqual(late.events, [.failed(.unavailable, isUnprocessed: true)])
  }

  func testIdleConnectionClosedByTheServerIsNoError() throws {
    let peer = try HTTP2TestPeer()
    peer.channel.pipeline.fireChannelInactive()
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .closed(nil)])
  }

  func testConnectionLostBeforeSettings() throws {
    let peer = try HTTP2TestPeer(settings: nil)
    peer.channel.pipeline.fireChannelInactive()
    XCTAssertEqual(peer.delegate.events, [.closed(.unavailable)])
  }

  func testChannelError() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    peer.channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
    peer.run()
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertTrue(handler.failure?.error.exception is IOError)
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
  }

  func testGarbage() throws {
    for garbage in [
      "SSH-2.0-server\r\n this is not HTTP/2 at all", String(repeating: "\u{7f}", count: 5000),
    ] {
      for isByteByByte in [false, true] {
        let peer = try HTTP2TestPeer(settings: nil)
        peer.isByteByByte = isByteByByte
        let handler = RecordingHandler()
        _ = peer.startUnary(handler)
        _ = try peer.sent()
        // Once the connection has closed itself, the embedded channel refuses the rest.
        try? peer.send(Array(garbage.utf8))
        XCTAssertEqual(handler.events, [.started, .failed(.internalError, isUnprocessed: false)])
        XCTAssertEqual(peer.delegate.events, [.willClose, .closedStream, .closed(.internalError)])
        XCTAssertEqual(try peer.sent().map(\.kind), [.goAway])
        XCTAssertFalse(peer.channel.isActive)
      }
    }
  }

  func testAnswerInHTTP1() throws {
    let peer = try HTTP2TestPeer(settings: nil)
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
    XCTAssertEqual(handler.events, [.started, .failed(.unavailable, isUnprocessed: false)])
    XCTAssertTrue(handler.failure?.error.message?.contains("does not speak HTTP/2") == true)
    XCTAssertEqual(peer.delegate.events, [.willClose, .closedStream, .closed(.unavailable)])
    XCTAssertFalse(peer.channel.isActive)
  }

  func testAnswerInHTTP1InPieces() throws {
    let answer = "HTTP/1.0 505 HTTP Version Not Supported\r\n\r\n"
    for split in 1..<5 {
      let peer = try HTTP2TestPeer(settings: nil)
      let handler = RecordingHandler()
      _ = peer.startUnary(handler)
      _ = try peer.sent()
      try peer.send(Array(answer.utf8.prefix(split)))
      XCTAssertTrue(peer.channel.isActive, "\(split)")
      try peer.send(Array(answer.utf8.dropFirst(split)))
      XCTAssertEqual(handler.failure?.error.code, .unavailable, "\(split)")
      let message = handler.failure?.error.message ?? ""
      XCTAssertTrue(message.contains("does not speak HTTP/2"), message)
      XCTAssertTrue(message.contains("it has answered 'HTTP/1.0 505"), "\(split): \(message)")
    }
  }

  func testGarbageAfterTheHandshake() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(HTTP2Frame(kind: .headers, flags: 4, streamID: 1, payload: [0xff, 0xff, 0xff, 0xff]).bytes)
    XCTAssertEqual(handler.failure?.error.code, .internalError)
    XCTAssertEqual(peer.delegate.events.last, .closed(.internalError))
    XCTAssertEqual(try peer.sent().map(\.kind), [.goAway])
  }

  func testPushIsRefused() throws {
    let peer = try HTTP2TestPeer()
    _ = peer.startUnary(RecordingHandler())
    _ = try peer.sent()
    let push = HTTP2Frame.bytes(2) + HTTP2Frame.fieldBlock([(":method", "GET"), (":path", "/")])
    try peer.send(HTTP2Frame(kind: .pushPromise, flags: 4, streamID: 1, payload: push).bytes)
    XCTAssertEqual(peer.delegate.events.last, .closed(.internalError))
  }

  func testFloodOfPings() throws {
    let peer = try HTTP2TestPeer()
    try? peer.send((0..<3000).flatMap { _ in HTTP2Frame.ping().bytes })
    XCTAssertEqual(peer.delegate.events.last, .closed(.internalError))
    XCTAssertFalse(peer.channel.isActive)
  }

  func testDrain() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    peer.connection.drain()
    XCTAssertEqual(try peer.sent(), [])
    XCTAssertTrue(peer.channel.isActive)
    let late = RecordingHandler()
    _ = peer.startUnary(late)
    try peer.send(.headers(1, end: true))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(late.events, [.failed(.unavailable, isUnprocessed: true)])
    peer.run()
    XCTAssertFalse(peer.channel.isActive)
    XCTAssertEqual(try peer.sent(), [.goAway(last: 0)])
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
    XCTAssertFalse(peer.delegate.events.contains(.willClose))
  }

  func testDrainOfAnIdleConnection() throws {
    let peer = try HTTP2TestPeer()
    peer.connection.drain()
    XCTAssertEqual(peer.delegate.events, [.canServe(100)], "the pool is told later")
    peer.run()
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .closed(nil)])
  }

  func testClose() throws {
    let peer = try HTTP2TestPeer()
    let sent = RecordingHandler()
    let unsent = RecordingHandler()
    _ = peer.startUnary(sent)
    _ = try peer.sent()
    _ = peer.startUnary(unsent)
    peer.connection.close(failing: ConnectError(code: .canceled, message: "shutdown"))
    XCTAssertEqual(sent.events, [.started])
    XCTAssertEqual(try peer.sent(), [.goAway(last: 0)])
    XCTAssertEqual(sent.events, [.started, .failed(.canceled, isUnprocessed: false)])
    XCTAssertEqual(unsent.events, [.started, .failed(.canceled, isUnprocessed: true)])
    XCTAssertEqual(peer.delegate.events.suffix(3), [.closedStream, .closedStream, .closed(.canceled)])
    XCTAssertFalse(peer.channel.isActive)
  }

  func testStreamIDsRunOut() throws {
    let peer = try HTTP2TestPeer()
    peer.connection.session.handle?.skipStreamIDs(to: Int32.max)
    let last = RecordingHandler()
    let late = RecordingHandler()
    _ = peer.startUnary(last)
    _ = peer.startUnary(late)
    XCTAssertEqual(try peer.sent().map(\.streamID), [Int32.max, Int32.max])
    XCTAssertEqual(last.events, [.started])
    XCTAssertEqual(late.events, [.failed(.unavailable, isUnprocessed: true)])
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .willClose, .closedStream])
    try peer.send(.headers(Int32.max, end: true))
    XCTAssertEqual(last.events.last, .end([:]))
    peer.run()
    XCTAssertEqual(peer.delegate.events.suffix(2), [.closedStream, .closed(nil)])
  }

  func testChannelClosedByAHandlerKeepsTheCompleteResponse() throws {
    let peer = try HTTP2TestPeer()
    let handlers = [RecordingHandler(), RecordingHandler(), RecordingHandler()]
    for handler in handlers { _ = peer.startUnary(handler) }
    _ = try peer.sent()
    handlers[0].onEvent = { if case .end = $0 { peer.channel.close(promise: nil) } }
    try peer.send(.headers(1, end: true), .headers(3, end: true))
    XCTAssertEqual(handlers[0].events.last, .end([:]))
    XCTAssertEqual(handlers[1].events.last, .end([:]))
    XCTAssertEqual(handlers[2].events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(peer.delegate.closedStreams, 3)
    guard case .closed? = peer.delegate.events.last else { return XCTFail("\(peer.delegate.events)") }
  }

  // MARK: Keepalive

  private let keepalive = HTTP2Configuration(
    keepalive: .init(interval: .seconds(30), timeout: .seconds(10)),
    silenceLimit: nil
  )

  func testKeepaliveTimeout() throws {
    let peer = try HTTP2TestPeer(self.keepalive)
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(30))
    XCTAssertEqual(try peer.sent().map(\.kind), [.ping])
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(9))
    XCTAssertNil(handler.failure)
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
    XCTAssertFalse(peer.channel.isActive)
  }

  func testKeepaliveAnswered() throws {
    let peer = try HTTP2TestPeer(self.keepalive)
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    for _ in 0..<3 {
      peer.channel.embeddedEventLoop.advanceTime(by: .seconds(30))
      let pings = try peer.sent()
      XCTAssertEqual(pings.map(\.kind), [.ping])
      try peer.send(.ping(pings.first?.payload ?? [], ack: true))
    }
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(29))
    XCTAssertNil(handler.failure)
  }

  /// Of the connections that follow, too.
  func testTooManyPingsSlowTheKeepaliveDown() throws {
    let peer = try HTTP2TestPeer(self.keepalive)
    try peer.send(.goAway(last: 0, .enhanceYourCalm, debug: "too_many_pings"))
    XCTAssertEqual(peer.pace.value, 2)
    let other = try HTTP2TestPeer(self.keepalive)
    try other.send(.goAway(last: 0, .enhanceYourCalm, debug: "something else"))
    XCTAssertEqual(other.pace.value, 1)
  }

  func testNoKeepaliveWithoutStreams() throws {
    let peer = try HTTP2TestPeer(self.keepalive)
    peer.channel.embeddedEventLoop.advanceTime(by: .seconds(1000))
    XCTAssertEqual(try peer.sent(), [])
    var configuration = self.keepalive
    configuration.keepalive?.pingsWithoutStreams = true
    let eager = try HTTP2TestPeer(configuration)
    eager.channel.embeddedEventLoop.advanceTime(by: .seconds(30))
    XCTAssertEqual(try eager.sent().map(\.kind), [.ping])
  }

  // MARK: Memory

  func testEverythingIsReleased() throws {
    weak var connection: HTTP2Connection?
    weak var session: HTTP2Session?
    var streams: [Weak] = []
    try {
      let peer = try HTTP2TestPeer(settings: .settings(initialWindow: 4))
      connection = peer.connection
      session = peer.connection.session
      func start(body: HTTPStreamRequest.Body) -> (RecordingHandler, any HTTPStream) {
        let handler = RecordingHandler()
        let stream = peer.start(handler, body: body)
        streams.append(Weak(handler))
        streams.append(Weak(stream))
        return (handler, stream)
      }
      let body = HTTPStreamRequest.Body.complete(ByteBuffer(string: "a body that waits"))
      _ = start(body: body)
      _ = start(body: .streamed)
      _ = start(body: .streamed).1.write(ByteBuffer(string: "waits"))
      _ = start(body: .streamed).1.cancel()
      _ = start(body: .complete(ByteBuffer()))
      _ = try peer.sent()
      try peer.send(.headers(9, end: true), .headers(3))
      start(body: body).1.cancel()
      XCTAssertEqual(streams[8].object == nil && streams[9].object == nil, true, "over, hence released")
      XCTAssertNotNil(streams[0].object)
      peer.setWritable(false)
      _ = start(body: body)
      start(body: body).1.cancel()
      peer.channel.close(promise: nil)
      peer.run()
      _ = start(body: body)
      peer.run()
    }()
    XCTAssertEqual(streams.count { $0.object != nil }, 0)
    XCTAssertNil(connection)
    XCTAssertNil(session)
  }
}

private struct Weak {
  weak var object: AnyObject?
  init(_ object: AnyObject) { self.object = object }
}
