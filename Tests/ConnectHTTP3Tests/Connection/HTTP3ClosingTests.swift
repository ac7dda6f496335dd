internal import CQUICPeer
internal import Connect
internal import ConnectNIO
internal import NIOCore
internal import XCTest

@testable internal import ConnectHTTP3

final class HTTP3ClosingTests: XCTestCase {
  private func makePeer(
    keepalive: HTTP3Keepalive = HTTP3Keepalive(),
    limits: HTTP3SessionLimits = HTTP3SessionLimits(),
    _ change: (inout quic_peer_options) -> Void = { _ in }
  ) async throws -> HTTP3TestPeer {
    let certificates = try await SharedCertificates.shared.get()
    let peer = try HTTP3TestPeer(certificates, limits: limits, keepalive: keepalive, change)
    try peer.connect()
    return peer
  }

  /// A connection with one call that waits for its response.
  private func makeBusyPeer(
    keepalive: HTTP3Keepalive = HTTP3Keepalive()
  ) async throws -> (HTTP3TestPeer, RecordingHandler) {
    let peer = try await self.makePeer(keepalive: keepalive)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.isComplete, true)
    return (peer, handler)
  }

  // MARK: Resets

  func testCancellationTellsTheServer() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: "x"))
    try peer.run()
    stream.cancel()
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(handler.events, [.started, .writable])
    XCTAssertEqual(peer.requests[0]?.resetCode, 0x10c)
    XCTAssertEqual(peer.requests[0]?.closeCode, 0x10c)
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    XCTAssertTrue(peer.connection.session.http.streams.isEmpty)
  }

  func testCancellationInTheMiddleOfAResponse() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.respond(0, body: "first", isOpen: true)
    try peer.run()
    handler.stream?.cancel()
    peer.send(0, Array("second".utf8))
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(handler.joinedEvents, [.started, .head(200, [:]), .bytes("first")])
    XCTAssertEqual(peer.requests[0]?.closeCode, 0x10c)
    XCTAssertEqual(peer.delegate.closedStreams, 1)
  }

  func testResetByTheServer() async throws {
    for (code, expected, isUnprocessed) in [
      (0x10b, Code.unavailable, true), (0x10c, .canceled, false), (0x107, .resourceExhausted, false),
      (0x102, .internalError, false), (0x100, .internalError, false), (0x4242, .internalError, false),
    ] as [(UInt64, Code, Bool)] {
      let (peer, handler) = try await self.makeBusyPeer()
      peer.reset(0, code)
      try peer.elapse(.milliseconds(100))
      XCTAssertEqual(handler.events, [.started, .failed(expected, isUnprocessed: isUnprocessed)])
      XCTAssertTrue(handler.message.hasPrefix("the server reset the stream: "), handler.message)
      XCTAssertEqual(peer.delegate.closedStreams, 1)
      XCTAssertEqual(peer.delegate.events.contains(.willClose), false)
    }
  }

  func testResetInTheMiddleOfAResponseIsProcessed() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.respond(0, body: "first", isOpen: true)
    try peer.run()
    peer.reset(0, 0x10b)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(
      handler.joinedEvents,
      [.started, .head(200, [:]), .bytes("first"), .failed(.unavailable, isUnprocessed: false)]
    )
    XCTAssertEqual(handler.failure?.error.httpStatus, 200)
  }

  func testServerThatWantsNoMoreOfTheRequestMayStillAnswer() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: "x"))
    try peer.run()
    peer.stop(0, 0x100)
    peer.respond(0, body: "first", isOpen: true)
    try peer.run()
    // What is written now goes nowhere, and nobody waits for it.
    stream.write(ByteBuffer(string: "y"))
    try peer.run()
    XCTAssertEqual(handler.events.count { $0 == .writable }, 2)
    peer.send(0, Array(" second".utf8))
    peer.finish(0, [("grpc-status", "0")])
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(
      handler.events.filter { $0 != .writable },
      [.started, .head(200, [:]), .bytes("first"), .bytes(" second"), .end(["grpc-status": ["0"]])]
    )
    XCTAssertEqual(peer.delegate.closedStreams, 1)
  }

  func testResponseThatEndsBeforeItsRequestEndsTheRequest() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: "x"))
    try peer.run()
    peer.respond(0, body: "early")
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(peer.requests[0]?.isComplete, true)
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    stream.write(ByteBuffer(string: "late"))
    stream.finish(trailers: [:])
    try peer.run()
  }

  /// The server's window for the stream is full, and stays so.
  func testResponseThatEndsBeforeARequestThatIsHeldBackEndsTheRequest() async throws {
    for isStreamed in [false, true] {
      let peer = try await self.makePeer {
        $0.stream_window = 50_000
        $0.holds_windows = 1
      }
      let handler = RecordingHandler()
      let body = ByteBuffer(repeating: 1, count: 400_000)
      if isStreamed {
        let stream = peer.start(handler, body: .streamed)
        stream.write(body)
        stream.finish(trailers: [:])
      } else {
        _ = peer.start(handler, body: .complete(body))
      }
      // Before all of the window is used, and afterwards.
      if isStreamed { try peer.elapse(.milliseconds(100)) } else { try peer.run() }
      peer.respond(0, body: "early")
      try peer.elapse(.milliseconds(500))
      XCTAssertEqual(handler.events.last, .end([:]))
      XCTAssertEqual(peer.requests[0]?.isComplete, false)
      XCTAssertEqual(peer.requests[0]?.resetCode, HTTP3ErrorCode.requestCancelled.rawValue)
      XCTAssertEqual(peer.delegate.closedStreams, 1)
      XCTAssertTrue(peer.connection.session.http.streams.isEmpty)
    }
  }

  /// A writer that waits for the server's window hears of it when the server wants no more.
  func testServerThatWantsNoMoreWakesAWriterThatIsHeldBack() async throws {
    let peer = try await self.makePeer {
      $0.stream_window = 50_000
      $0.holds_windows = 1
    }
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(repeating: 1, count: 400_000))
    stream.write(ByteBuffer(repeating: 1, count: 400_000))
    try peer.elapse(.milliseconds(200))
    let writable = handler.events.count { $0 == .writable }
    peer.stop(0, 0x100)
    try peer.elapse(.milliseconds(200))
    stream.write(ByteBuffer(string: "more"))
    try peer.elapse(.milliseconds(200))
    XCTAssertGreaterThan(handler.events.count { $0 == .writable }, writable)
    peer.respond(0, body: "x")
    try peer.elapse(.milliseconds(200))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(peer.delegate.closedStreams, 1)
  }

  // MARK: GOAWAY

  func testGoAwayLetsOpenCallsFinish() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.noticeShutdown()
    try peer.run()
    XCTAssertEqual(peer.delegate.events.last, .willClose)
    let late = RecordingHandler()
    peer.startUnary(late)
    try peer.run()
    XCTAssertEqual(late.events, [.failed(.unavailable, isUnprocessed: true)])
    peer.goAway()
    peer.respond(0, body: "done")
    try peer.elapse(.milliseconds(200))
    XCTAssertEqual(handler.joinedEvents, [.started, .head(200, [:]), .bytes("done"), .end([:])])
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
  }

  func testGoAwayFailsCallsThatCameTooLate() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    // The second request is on its way while the server goes away.
    let second = RecordingHandler()
    peer.network = { direction, datagram in direction == .toServer ? [] : [datagram] }
    peer.startUnary(second)
    peer.goAway()
    try peer.run()
    XCTAssertEqual(second.events.last, .failed(.unavailable, isUnprocessed: true))
    XCTAssertTrue(second.message.contains("GOAWAY"), second.message)
    peer.network = { [$1] }
    peer.respond(0, body: "done")
    try peer.elapse(.seconds(2))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
  }

  // MARK: The end of the connection

  func testConnectionCloseInOrder() async throws {
    let peer = try await self.makePeer()
    peer.close(0x100)
    try peer.run()
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
  }

  func testConnectionCloseFailsCalls() async throws {
    let cases: [(UInt64, Bool, Code, String)] = [
      (
        0x100, true, .unavailable,
        "https://localhost closed the HTTP/3 connection before the response was complete: bye"
      ),
      (
        0x107, true, .resourceExhausted,
        "https://localhost ended the HTTP/3 connection: H3_EXCESSIVE_LOAD: bye"
      ),
      (0x102, true, .internalError, "https://localhost ended the HTTP/3 connection: H3_INTERNAL_ERROR: bye"),
      (
        0x0, false, .unavailable,
        "https://localhost closed the HTTP/3 connection before the response was complete: bye"
      ),
      (0x1, false, .unavailable, "https://localhost ended the QUIC connection: INTERNAL_ERROR: bye"),
      (0xa, false, .internalError, "https://localhost ended the QUIC connection: PROTOCOL_VIOLATION: bye"),
      (
        0x174, false, .unavailable,
        "the HTTP/3 connection to https://localhost broke: the server requires a client certificate (TLSV1_ALERT_CERTIFICATE_REQUIRED)"
      ),
    ]
    for (code, isApplication, expected, message) in cases {
      let (peer, handler) = try await self.makeBusyPeer()
      peer.close(code, reason: "bye", isApplication: isApplication)
      try peer.run()
      XCTAssertEqual(handler.events, [.started, .failed(expected, isUnprocessed: false)])
      XCTAssertEqual(handler.message, message)
      XCTAssertEqual(
        Array(peer.delegate.events.suffix(3)),
        [.willClose, .closedStream, .closed(expected)]
      )
    }
  }

  /// With several calls, nobody knows whose request or response the server complains of.
  func testConnectionCloseWithSeveralCalls() async throws {
    for (code, isApplication, expected) in [
      (0x101, true, Code.unavailable), (0x107, true, .resourceExhausted), (0xa, false, .unavailable),
    ] as [(UInt64, Bool, Code)] {
      let (peer, first) = try await self.makeBusyPeer()
      let second = RecordingHandler()
      peer.startUnary(second)
      try peer.run()
      peer.close(code, reason: "a\u{1}b\n", isApplication: isApplication)
      try peer.run()
      for handler in [first, second] {
        XCTAssertEqual(handler.failure?.error.code, expected, handler.message)
        XCTAssertTrue(handler.message.contains(": a\u{fffd}b\u{fffd}"), handler.message)
      }
    }
  }

  func testConnectionCloseInTheMiddleOfAResponse() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.respond(0, body: "first", isOpen: true)
    try peer.run()
    peer.close(0x100)
    try peer.run()
    XCTAssertEqual(
      handler.joinedEvents,
      [.started, .head(200, [:]), .bytes("first"), .failed(.unavailable, isUnprocessed: false)]
    )
    XCTAssertTrue(handler.message.contains("before the response was complete"), handler.message)
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
    XCTAssertEqual(peer.delegate.unfitReasons, [], "it has answered")
  }

  func testConnectionCloseWhileDraining() async throws {
    for isApplication in [true, false] {
      let (peer, handler) = try await self.makeBusyPeer()
      peer.connection.drain()
      try peer.run()
      peer.close(isApplication ? 0x100 : 0, isApplication: isApplication)
      try peer.run()
      XCTAssertEqual(handler.events, [.started, .failed(.unavailable, isUnprocessed: false)])
      XCTAssertEqual(Array(peer.delegate.events.suffix(2)), [.closedStream, .closed(.unavailable)])
      XCTAssertFalse(peer.delegate.events.contains(.willClose), "the pool drains it itself")
    }
  }

  func testStatelessReset() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.injectAtClient(peer.statelessReset())
    try peer.run()
    XCTAssertEqual(handler.events, [.started, .failed(.unavailable, isUnprocessed: false)])
    XCTAssertTrue(handler.message.contains("stateless reset"), handler.message)
  }

  func testDrainingClosesOnceTheLastCallIsOver() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.connection.drain()
    try peer.run()
    peer.respond(0, body: "done")
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
    XCTAssertNotEqual(peer.serverError, 0, "the server was told of the end")
  }

  func testCloseFailsCallsWithTheGivenError() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    peer.connection.close(failing: ConnectError(code: .aborted, message: "enough"))
    XCTAssertEqual(handler.events, [.started])
    try peer.run()
    XCTAssertEqual(handler.events, [.started, .failed(.aborted, isUnprocessed: false)])
    XCTAssertNotEqual(peer.serverError, 0)
  }

  // MARK: Silence

  func testIdleConnectionIsForgotten() async throws {
    let peer = try await self.makePeer(limits: HTTP3SessionLimits(idleTimeout: 5_000_000_000))
    try peer.elapse(.seconds(6))
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
  }

  func testCallsKeepAConnectionAlive() async throws {
    let peer = try await self.makePeer(limits: HTTP3SessionLimits(idleTimeout: 2_000_000_000))
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.elapse(.seconds(10))
    peer.respond(0, body: "at last")
    try peer.run()
    XCTAssertEqual(handler.joinedEvents.last, .end([:]))
    try peer.elapse(.seconds(3))
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
  }

  func testPeerThatVanishesIsGivenUp() async throws {
    let (peer, handler) = try await self.makeBusyPeer(keepalive: HTTP3Keepalive(unacknowledged: .seconds(5)))
    try peer.elapse(.seconds(1))
    peer.network = { _, _ in [] }
    let second = RecordingHandler()
    peer.startUnary(second)
    try peer.elapse(.milliseconds(4900))
    XCTAssertFalse(handler.isOver)
    try peer.elapse(.milliseconds(200))
    XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertEqual(second.events.last, .failed(.unavailable, isUnprocessed: false))
    XCTAssertTrue(handler.message.contains("has acknowledged nothing for 5.0 seconds"), handler.message)
  }

  func testCallThatTimesOutInSilenceMakesThePeerSuspect() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    try peer.elapse(.seconds(1))
    let second = RecordingHandler()
    peer.network = { _, _ in [] }
    peer.startUnary(second)
    try peer.elapse(.milliseconds(500))
    second.stream?.expire()
    XCTAssertEqual(peer.delegate.events.last, .suspect)
    var sent = 0
    peer.network = { direction, _ in
      if direction == .toServer { sent += 1 }
      return []
    }
    try peer.elapse(.milliseconds(500))
    XCTAssertTrue((1...10).contains(sent), "\(sent) datagrams to a peer that is silent")
    peer.network = { [$1] }
    try peer.elapse(.seconds(3))
    XCTAssertTrue(peer.delegate.events.contains(.alive))
    XCTAssertFalse(handler.isOver)
  }

  func testCallThatTimesOutWhileThePeerAnswersIsNoSuspicion() async throws {
    let (peer, handler) = try await self.makeBusyPeer()
    try peer.elapse(.milliseconds(100))
    handler.stream?.expire()
    try peer.elapse(.milliseconds(100))
    XCTAssertFalse(peer.delegate.events.contains(.suspect))
  }
}
