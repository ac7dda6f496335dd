internal import Connect
internal import NIOCore
internal import XCTest

@testable internal import ConnectHTTP3

final class HTTP3ExchangeTests: XCTestCase {
  private func makePeer() async throws -> HTTP3TestPeer {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    return peer
  }

  func testHandshakeTellsHowManyStreamsThereMayBe() async throws {
    let peer = try await self.makePeer()
    XCTAssertTrue(peer.isServerEstablished)
    XCTAssertEqual(peer.delegate.events, [.canServe(100)])
  }

  func testAuthorityOfACall() async throws {
    let peer = try await self.makePeer()
    for (index, authority) in ["api.example:8443", nil].enumerated() {
      let body = HTTPStreamRequest.Body.complete(ByteBuffer(string: "hello"))
      _ = peer.start(RecordingHandler(), body: body, authority: authority)
      try peer.run()
      XCTAssertEqual(peer.requests[Int64(4 * index)]?.headers[":authority"], authority ?? "demo.example")
    }
  }

  func testUnaryExchange() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    let request = try XCTUnwrap(peer.requests[0])
    XCTAssertEqual(
      request.headers,
      [
        ":method": "POST", ":scheme": "https", ":authority": "demo.example", ":path": "/demo.Service/Method",
        "content-type": "application/proto", "content-length": "5",
      ]
    )
    XCTAssertEqual(request.text, "hello")
    XCTAssertTrue(request.isComplete)
    XCTAssertEqual(handler.events, [.started])
    XCTAssertEqual(handler.info?.version, .http3)
    XCTAssertEqual(handler.info?.isReused, false)

    peer.respond(
      0,
      200,
      [("content-type", "application/proto")],
      body: "world",
      trailers: [("grpc-status", "0")]
    )
    try peer.run()
    XCTAssertEqual(
      handler.joinedEvents,
      [
        .started, .head(200, ["content-type": ["application/proto"]]), .bytes("world"),
        .end(["grpc-status": ["0"]]),
      ]
    )
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(peer.requests[0]?.closeCode, 0x100)
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    XCTAssertTrue(peer.connection.session.http.streams.isEmpty)
  }

  func testGETHasNoBody() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    _ = peer.start(handler, method: .get, target: "/x?y=1", headers: [:], body: .complete(ByteBuffer()))
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.headers[":method"], "GET")
    XCTAssertEqual(peer.requests[0]?.headers[":path"], "/x?y=1")
    XCTAssertNil(peer.requests[0]?.headers["content-length"])
    XCTAssertEqual(peer.requests[0]?.isComplete, true)
    peer.respond(0, 304)
    try peer.run()
    XCTAssertEqual(handler.events, [.started, .head(304, [:]), .end([:])])
  }

  func testStreamedRequestWithTrailers() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.hasHead, true)
    stream.write(ByteBuffer(string: "one "))
    stream.write(ByteBuffer(string: "two "))
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.text, "one two ")
    XCTAssertEqual(handler.events, [.started, .writable])
    stream.write(ByteBuffer(string: "three"))
    stream.finish(trailers: ["checksum": ["7"]])
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.text, "one two three")
    XCTAssertEqual(peer.requests[0]?.trailers, ["checksum": "7"])
    XCTAssertEqual(peer.requests[0]?.isComplete, true)
    // What was sent is acknowledged after a while, and then nothing is held.
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(peer.connection.session.http.streams[0]?.request.outbound.heldBytes, 0)
  }

  func testMessagesInBothDirections() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    try peer.run()
    peer.respond(isOpen: true)
    for index in 1...5 {
      stream.write(ByteBuffer(string: "ping\(index)"))
      try peer.run()
      XCTAssertEqual(peer.requests[0]?.text.hasSuffix("ping\(index)"), true)
      peer.send(0, Array("pong\(index)".utf8))
      try peer.run()
      XCTAssertEqual(handler.events.last, .bytes("pong\(index)"))
    }
    stream.finish(trailers: [:])
    peer.finish(0)
    try peer.run()
    XCTAssertEqual(handler.events.last, .end([:]))
  }

  func testLargeBodiesInBothDirections() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    let body = String(repeating: "0123456789abcdef", count: 200_000)
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: body))
    stream.finish(trailers: [:])
    try peer.elapse(.seconds(2))
    XCTAssertEqual(peer.requests[0]?.isComplete, true)
    XCTAssertEqual(peer.requests[0]?.text == body, true)
    XCTAssertEqual(peer.connection.session.http.streams[0]?.request.outbound.heldBytes, 0)
    peer.respond(0, body: body)
    try peer.elapse(.seconds(2))
    XCTAssertEqual(handler.joinedEvents, [.started, .head(200, [:]), .bytes(body), .end([:])])
  }

  func testManyStreamsAtTheSameTime() async throws {
    let peer = try await self.makePeer()
    peer.onRequest = { peer, stream in
      peer.respond(stream, 200, [("stream", "\(stream)")], body: peer.requests[stream]?.text ?? "")
    }
    let handlers = (0..<100).map { _ in RecordingHandler() }
    for (index, handler) in handlers.enumerated() { peer.startUnary(handler, body: "body \(index)") }
    try peer.elapse(.seconds(1))
    for (index, handler) in handlers.enumerated() {
      XCTAssertEqual(
        handler.joinedEvents,
        [.started, .head(200, ["stream": ["\(4 * index)"]]), .bytes("body \(index)"), .end([:])]
      )
    }
    XCTAssertEqual(peer.delegate.closedStreams, 100)
  }

  func testInformationalResponsesAreLeftOut() async throws {
    let peer = try await self.makePeer()
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    peer.inform(0, 103)
    peer.respond(0, 200, body: "x")
    try peer.run()
    XCTAssertEqual(handler.joinedEvents, [.started, .head(200, [:]), .bytes("x"), .end([:])])
  }

  func testStreamOfAConnectionThatIsNotReadyIsUnprocessed() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    let handler = RecordingHandler()
    peer.startUnary(handler)
    XCTAssertEqual(handler.events, [])
    try peer.run()
    XCTAssertEqual(handler.events, [.failed(.unavailable, isUnprocessed: true)])
  }
}
