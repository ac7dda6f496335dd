internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// Streams that end early, from either side.
final class HTTP2ResetTests: XCTestCase {
  private func failure(resetWith errorCode: HTTP2ErrorCode) throws -> HTTPStreamFailure? {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.reset(1, errorCode))
    XCTAssertEqual(handler.events.count, 2)
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    XCTAssertEqual(try peer.sent(), [])
    return handler.failure
  }

  func testResetsByTheServer() throws {
    let refused = try self.failure(resetWith: .refusedStream)
    XCTAssertEqual(refused?.error.code, .unavailable)
    XCTAssertEqual(refused?.isUnprocessed, true)
    XCTAssertEqual(refused?.error.message, "the server reset the stream: REFUSED_STREAM")
    for (raw, code) in [
      (0, Code.internalError), (1, .internalError), (8, .canceled), (11, .resourceExhausted),
      (12, .permissionDenied), (0xff, .internalError),
    ] as [(UInt32, Code)] {
      let failure = try self.failure(resetWith: HTTP2ErrorCode(rawValue: raw))
      XCTAssertEqual(failure?.error.code, code)
      XCTAssertEqual(failure?.isUnprocessed, false)
    }
    XCTAssertEqual(
      try self.failure(resetWith: .enhanceYourCalm)?.error.message,
      "the server reset the stream: ENHANCE_YOUR_CALM"
    )
    XCTAssertEqual(
      try self.failure(resetWith: HTTP2ErrorCode(rawValue: 0xff))?.error.message,
      "the server reset the stream: error code 0xff"
    )
  }

  func testResetAfterHalfABody() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1), .data(1, "half"), .reset(1, .refusedStream))
    XCTAssertEqual(
      handler.events,
      [.started, .head(200, [:]), .bytes("half"), .failed(.unavailable, isUnprocessed: false)]
    )
    XCTAssertEqual(handler.failure?.error.httpStatus, 200)
  }

  func testResetAfterACompleteResponseIsNoError() throws {
    for errorCode in [HTTP2ErrorCode.noError, .cancel, .protocolError] {
      let peer = try HTTP2TestPeer()
      let handler = RecordingHandler()
      let stream = peer.start(handler, body: .streamed)
      stream.write(ByteBuffer(string: "x"))
      _ = try peer.sent()
      try peer.send(.headers(1, end: true), .reset(1, errorCode))
      XCTAssertEqual(handler.events, [.started, .writable, .head(200, [:]), .end([:])])
      XCTAssertEqual(peer.delegate.closedStreams, 1)
      XCTAssertEqual(try peer.sent(), [])
    }
  }

  // MARK: The server ends first

  func testServerEndsWhileOnlyEndStreamIsDue() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: "x"))
    _ = try peer.sent()
    try peer.send(.headers(1, [(":status", "200"), ("grpc-status", "16")], end: true))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(try peer.sent(), [.data(1, "", end: true)])
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    stream.write(ByteBuffer(string: "y"))
    XCTAssertEqual(try peer.sent(), [])
  }

  func testServerEndsWhileFinishWaitsToBeSent() throws {
    for trailers in [Headers(), ["x": ["y"]]] {
      let peer = try HTTP2TestPeer()
      let handler = RecordingHandler()
      let stream = peer.start(handler, body: .streamed)
      _ = try peer.sent()
      stream.finish(trailers: trailers)
      try peer.send(.headers(1, end: true))
      XCTAssertEqual(handler.events.last, .end([:]))
      let frames = try peer.sent()
      XCTAssertEqual(frames.map(\.kind), [trailers.isEmpty ? .data : .headers])
      XCTAssertEqual(frames.map(\.isEndStream), [true])
      XCTAssertEqual(peer.delegate.closedStreams, 1)
    }
  }

  func testServerEndsWhileBytesWait() throws {
    let peer = try HTTP2TestPeer(settings: .settings(initialWindow: 4))
    for isStreamed in [true, false] {
      let handler = RecordingHandler()
      let body = ByteBuffer(string: "too long")
      let stream = peer.start(handler, body: isStreamed ? .streamed : .complete(body))
      if isStreamed { stream.write(body) }
      let id = try XCTUnwrap(peer.sent().first?.streamID)
      try peer.send(.headers(id, [(":status", "413")], end: true))
      XCTAssertEqual(handler.events, [.started, .head(413, [:]), .end([:])])
      XCTAssertEqual(try peer.sent(), [.reset(id, .cancel)])
    }
    XCTAssertEqual(peer.delegate.closedStreams, 2)
  }

  func testServerEndsWhileTheWindowIsShut() throws {
    let peer = try HTTP2TestPeer(settings: .settings(initialWindow: 4))
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: "four"))
    _ = try peer.sent()
    try peer.send(.headers(1, end: true))
    XCTAssertEqual(try peer.sent(), [.reset(1, .cancel)], "an empty DATA frame would wait for the window")
    XCTAssertEqual(handler.events.last, .end([:]))
  }

  // MARK: Cancel

  func testCancelBeforeAnythingWasSent() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    peer.startUnary(handler).cancel()
    XCTAssertEqual(peer.delegate.closedStreams, 0, "the pool is told later")
    XCTAssertEqual(try peer.sent(), [])
    XCTAssertEqual(handler.events, [])
    XCTAssertEqual(peer.delegate.closedStreams, 1)
  }

  func testCancelWhileTheChannelIsNotWritable() throws {
    let peer = try HTTP2TestPeer()
    peer.setWritable(false)
    let handler = RecordingHandler()
    let stream = peer.startUnary(handler)
    peer.run()
    stream.cancel()
    peer.setWritable(true)
    XCTAssertEqual(try peer.sent(), [])
    XCTAssertEqual(peer.delegate.closedStreams, 1)
  }

  func testCancelWhileWaitingForTheResponse() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.startUnary(handler)
    _ = try peer.sent()
    stream.cancel()
    stream.cancel()
    // The ping asks whether the server is there.
    XCTAssertEqual(try peer.sent().filter { $0.kind != .ping }, [.reset(1, .cancel)])
    try peer.send(.headers(1), .data(1, "late", end: true))
    XCTAssertEqual(handler.events, [.started])
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    XCTAssertEqual(try peer.sent(), [])
  }

  func testCancelWithABodyThatWaits() throws {
    let peer = try HTTP2TestPeer(settings: .settings(initialWindow: 4))
    let stream = peer.startUnary(RecordingHandler(), body: "too long")
    _ = try peer.sent()
    stream.cancel()
    XCTAssertEqual(try peer.sent().filter { $0.kind != .ping }, [.reset(1, .cancel)])
    try peer.send(.windowUpdate(1, 100))
    XCTAssertEqual(try peer.sent(), [])
  }

  func testCancelInEachCallback() throws {
    let cases: [RecordingHandler.Event] = [.started, .head(200, [:]), .bytes("a"), .end(["t": ["u"]])]
    for (index, event) in cases.enumerated() {
      let peer = try HTTP2TestPeer()
      let handler = RecordingHandler()
      handler.onEvent = { if $0 == event { handler.stream?.cancel() } }
      _ = peer.startUnary(handler)
      _ = try peer.sent().filter { $0.kind != .reset }
      try peer.send(.headers(1), .data(1, "a"), .headers(1, [("t", "u")], end: true))
      XCTAssertEqual(handler.events, Array(cases[...index]))
      // The response was complete in one read: nothing is left to reset by the time it is acted on.
      XCTAssertEqual(try peer.sent(), [])
      XCTAssertEqual(peer.delegate.closedStreams, 1)
    }
  }

  func testCancelAfterAPartOfTheResponse() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    handler.onEvent = { if case .bytes = $0 { handler.stream?.cancel() } }
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1), .data(1, "a"), .data(1, "b"))
    XCTAssertEqual(handler.events, [.started, .head(200, [:]), .bytes("a")])
    XCTAssertEqual(try peer.sent(), [.reset(1, .cancel)])
  }

  // MARK: Responses that cannot be taken

  func testHeaderListTooLarge() throws {
    let peer = try HTTP2TestPeer(HTTP2Configuration(maxHeaderListSize: 200))
    let handlers = [RecordingHandler(), RecordingHandler(), RecordingHandler()]
    for handler in handlers { _ = peer.startUnary(handler) }
    _ = try peer.sent()
    let status = ":status".utf8.count + 3 + 32
    let large = String(repeating: "x", count: 200 - status - 32 - 1 + 1)
    try peer.send(.headers(1, [(":status", "200"), ("n", large)]))
    try peer.send(.headers(3, [(":status", "200"), ("n", String(large.dropLast()))]))
    try peer.send(.headers(5), .headers(5, [("n", large), ("m", large)], end: true))
    XCTAssertEqual(handlers[0].events, [.started, .failed(.resourceExhausted, isUnprocessed: false)])
    XCTAssertEqual(
      handlers[0].failure?.error.message,
      "the response's header list of 201 bytes is over the limit of 200 bytes (maxHeaderListSize)"
    )
    XCTAssertEqual(handlers[1].events.count, 2, "exactly the limit is allowed")
    XCTAssertNil(handlers[1].failure)
    XCTAssertEqual(handlers[2].failure?.error.code, .resourceExhausted)
    XCTAssertEqual(try peer.sent(), [.reset(1, .cancel)], "the third was over on both sides")
    try peer.send(.data(3, "fine", end: true))
    XCTAssertEqual(handlers[1].events.last, .end([:]))
    XCTAssertEqual(peer.delegate.closedStreams, 3)
  }

  func testContentLengthMismatch() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1, [(":status", "200"), ("content-length", "10")]), .data(1, "short", end: true))
    XCTAssertEqual(handler.failure?.error.code, .internalError)
    XCTAssertEqual(handler.events.count { if case .end = $0 { true } else { false } }, 0)
    XCTAssertEqual(try peer.sent(), [.reset(1, .protocolError)])
  }

  func testRequestHeadersTooLarge() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let large = String(repeating: "x", count: 100_000)
    _ = peer.start(handler, headers: ["x": [large]], body: .complete(ByteBuffer(string: "a")))
    XCTAssertEqual(try peer.sent(), [])
    XCTAssertEqual(handler.events, [.started, .failed(.resourceExhausted, isUnprocessed: false)])
    let next = RecordingHandler()
    _ = peer.startUnary(next)
    XCTAssertEqual(try peer.sent().map(\.kind), [.headers, .data])
  }

  func testRequestTrailersTooLarge() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    _ = try peer.sent()
    stream.finish(trailers: ["x": [String(repeating: "x", count: 100_000)]])
    XCTAssertEqual(try peer.sent(), [.reset(1, .cancel)])
    XCTAssertEqual(handler.failure?.error.code, .resourceExhausted)
  }
}
