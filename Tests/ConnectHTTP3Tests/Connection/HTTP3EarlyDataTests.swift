internal import CQUICPeer
internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import XCTest

@testable internal import ConnectHTTP3

/// Connections that send requests before the handshake is complete (0-RTT).
final class HTTP3EarlyDataTests: XCTestCase {
  private static let head = HTTPStreamRequest(
    method: .post,
    target: "/demo.Service/Get",
    headers: ["content-type": ["application/proto"]],
    body: .complete(ByteBuffer(string: "hello"))
  )

  private static var safe: HTTPStreamRequest {
    var request = self.head
    request.hasNoSideEffects = true
    return request
  }

  /// A connection that has got a ticket, and is closed.
  private func first(
    _ change: @escaping (inout quic_peer_options) -> Void = { _ in }
  ) async throws -> HTTP3TestPeer {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get()) {
      $0.tickets = 1
      change(&$0)
    }
    try peer.connect()
    XCTAssertNotNil(peer.ticket)
    XCTAssertNil(peer.connection.session.tls.handle, "TLS is not needed once the ticket has come")
    return peer
  }

  /// Another connection to the server of `earlier`. Its server answers with the body of the request.
  private func next(
    after earlier: HTTP3TestPeer,
    keepalive: HTTP3Keepalive = HTTP3Keepalive(),
    _ change: @escaping (inout quic_peer_options) -> Void = { _ in }
  ) throws -> HTTP3TestPeer {
    let peer = try HTTP3TestPeer(earlier.certificates, after: earlier, keepalive: keepalive) {
      $0.tickets = 1
      change(&$0)
    }
    peer.onRequest = { $0.respond($1, body: $0.requests[$1]?.text ?? "") }
    return peer
  }

  private func start(_ request: HTTPStreamRequest, on peer: HTTP3TestPeer) -> RecordingHandler {
    let handler = RecordingHandler()
    handler.stream = peer.connection.startStream(request, handler: handler)
    return handler
  }

  private static let answered: [RecordingHandler.Event] = [
    .started, .head(200, [:]), .bytes("hello"), .end([:]),
  ]

  func testRequestGoesBeforeTheHandshakeIsComplete() async throws {
    let peer = try self.next(after: try await self.first())
    // Nothing comes from the server yet.
    let network = peer.network
    peer.network = { $0 == .toServer ? network($0, $1) : [] }
    peer.runClient()
    XCTAssertNotNil(try? peer.handshake?.get(), "ready before the handshake")
    XCTAssertEqual(peer.delegate.events, [.canServe(100)])
    let handler = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.isEarly, true)
    XCTAssertEqual(peer.requests[0]?.text, "hello")
    XCTAssertEqual(handler.info?.isEarlyData, true)
    XCTAssertFalse(peer.connection.handshake.isOver)

    peer.network = network
    try peer.elapse(.seconds(2))
    XCTAssertEqual(handler.joinedEvents, Self.answered)
    XCTAssertTrue(peer.connection.handshake.isOver)
    let late = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(late.joinedEvents, Self.answered)
    XCTAssertEqual(late.info?.isEarlyData, false)
    XCTAssertNotEqual(peer.requests[4]?.isEarly, true)
    XCTAssertEqual(peer.delegate.closedStreams, 2)
  }

  func testRequestsWithSideEffectsWait() async throws {
    let peer = try self.next(after: try await self.first())
    peer.runClient()
    var streamed = Self.safe
    streamed.body = .streamed
    let unsafe = self.start(Self.head, on: peer)
    let stream = self.start(streamed, on: peer)
    stream.stream?.write(ByteBuffer(string: "hel"))
    stream.stream?.write(ByteBuffer(string: "lo"))
    stream.stream?.finish(trailers: ["a": ["b"]])
    let safe = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(peer.requests[0]?.isEarly, true, "the safe one is the first")
    for id: Int64 in [4, 8] {
      XCTAssertEqual(peer.requests[id]?.text, "hello")
      XCTAssertEqual(peer.requests[id]?.isEarly, false)
    }
    XCTAssertEqual(peer.requests[8]?.trailers, ["a": "b"])
    XCTAssertEqual([unsafe, safe].map(\.joinedEvents), [Self.answered, Self.answered])
    XCTAssertEqual(stream.joinedEvents.filter { $0 != .writable }, Self.answered)
    XCTAssertEqual([unsafe, stream, safe].map(\.info?.isEarlyData), [false, false, true])
    XCTAssertEqual(peer.delegate.closedStreams, 3)
  }

  func testRejectedEarlyDataIsSentAgain() async throws {
    let peer = try self.next(after: try await self.first()) { $0.rejects_early_data = 1 }
    peer.runClient()
    let safe = [self.start(Self.safe, on: peer), self.start(Self.safe, on: peer)]
    let cancelled = self.start(Self.safe, on: peer)
    let held = self.start(Self.head, on: peer)
    peer.runClient()
    cancelled.stream?.cancel()
    try peer.run()
    for handler in safe { XCTAssertEqual(handler.joinedEvents, Self.answered) }
    XCTAssertEqual(held.joinedEvents, Self.answered)
    XCTAssertEqual(cancelled.events, [.started])
    XCTAssertEqual(peer.requests.count, 3)
    XCTAssertFalse(peer.requests.values.contains(where: \.isEarly))
    XCTAssertEqual(peer.delegate.closedStreams, 4)
    XCTAssertTrue(peer.connection.session.http.streams.isEmpty)
    XCTAssertNil(peer.connection.session.http.early)
    XCTAssertNotNil(peer.ticket, "for the next connection")
  }

  /// The server may show another certificate then, which has to name the authority: the call starts once more.
  func testAuthorityOfRejectedEarlyData() async throws {
    for isRejected in [false, true] {
      let peer = try self.next(after: try await self.first()) { $0.rejects_early_data = isRejected ? 1 : 0 }
      peer.runClient()
      var request = Self.safe
      request.authority = "api.example"
      let handler = self.start(request, on: peer)
      try peer.run()
      if isRejected {
        XCTAssertEqual(handler.failure?.isUnprocessed, true)
        XCTAssertEqual(peer.requests.count, 0)
      } else {
        XCTAssertEqual(handler.joinedEvents, Self.answered)
        XCTAssertEqual(peer.requests[0]?.headers[":authority"], "api.example")
      }
      XCTAssertEqual(peer.delegate.closedStreams, 1)
      XCTAssertNotNil(peer.ticket?.certificates)
    }
  }

  func testServerThatForgotTheTicketKey() async throws {
    let earlier = try await self.first()
    let other = try await self.first()
    let peer = try HTTP3TestPeer(other.certificates, after: other, ticket: earlier.ticket) { $0.tickets = 1 }
    peer.onRequest = { $0.respond($1, body: $0.requests[$1]?.text ?? "") }
    peer.runClient()
    let handler = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(handler.joinedEvents, Self.answered)
    XCTAssertEqual(peer.requests[0]?.isEarly, false)
  }

  func testTicketThatIsNoTicket() async throws {
    let earlier = try await self.first()
    let broken = SessionTicket(tls: [1, 2, 3], transport: try XCTUnwrap(earlier.ticket).transport)
    let peer = try HTTP3TestPeer(earlier.certificates, after: earlier, ticket: broken) { $0.tickets = 1 }
    XCTAssertNil(peer.connection.session.http.early)
    try peer.connect()
  }

  func testServerWithoutTickets() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    XCTAssertNil(peer.ticket)
  }

  /// A smaller limit than before is an error of the server, unless it rejects early data (RFC 9000, section 7.4.1).
  func testFewerStreamsThanBefore() async throws {
    let peer = try self.next(after: try await self.first()) {
      $0.rejects_early_data = 1
      $0.streams = 1
      $0.holds_streams = 1
    }
    peer.runClient()
    let handlers = (0..<3).map { _ in self.start(Self.safe, on: peer) }
    try peer.run()
    XCTAssertEqual(handlers[0].joinedEvents, Self.answered)
    for handler in handlers.dropFirst() {
      XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: true))
    }
    XCTAssertEqual(peer.delegate.closedStreams, 3)
  }

  func testRetryPacket() async throws {
    let peer = try self.next(after: try await self.first())
    peer.asksForToken = true
    peer.runClient()
    let handler = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(handler.joinedEvents, Self.answered)
  }

  func testTooEarly() async throws {
    let peer = try self.next(after: try await self.first())
    peer.onRequest = { $0.respond($1, 425, [("retry-after", "0")]) }
    peer.runClient()
    let early = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(early.events, [.started, .failed(.unavailable, isUnprocessed: true)])
    XCTAssertEqual(
      early.message,
      "the server does not take the request as early data (425 Too Early)"
    )
    let late = self.start(Self.safe, on: peer)
    try peer.run()
    XCTAssertEqual(late.events, [.started, .head(425, ["retry-after": ["0"]]), .end([:])])
    XCTAssertEqual(peer.delegate.closedStreams, 2)
  }

  func testServerThatIsGone() async throws {
    let peer = try self.next(after: try await self.first())
    peer.network = { _, _ in [] }
    peer.runClient()
    let handlers = [Self.safe, Self.head].map { self.start($0, on: peer) }
    try peer.elapse(.seconds(1))
    XCTAssertEqual(handlers.map(\.events), [[.started], []])
    peer.connection.handshake.giveUp(.ofConnection(.unavailable, "too late"))
    try peer.run()
    let failed = RecordingHandler.Event.failed(.unavailable, isUnprocessed: true)
    XCTAssertEqual(handlers.map(\.events), [[.started, failed], [failed]])
    XCTAssertEqual(handlers.map(\.message), ["too late", "too late"])
    XCTAssertEqual(peer.delegate.closedStreams, 2)
    XCTAssertEqual(peer.delegate.unfitReasons, [], "this says nothing about HTTP/3")
    XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
  }

  /// The limit for what is not acknowledged does not hold for handshakes, which have their own.
  func testHandshakeThatTakesLongerThanAcknowledgementsMay() async throws {
    let peer = try self.next(
      after: try await self.first(),
      keepalive: HTTP3Keepalive(unacknowledged: .seconds(1))
    )
    peer.network = { _, _ in [] }
    peer.runClient()
    let handlers = [Self.safe, Self.head].map { self.start($0, on: peer) }
    try peer.elapse(.milliseconds(2500))
    XCTAssertEqual(handlers.map(\.events), [[.started], []])
    peer.network = { [$1] }
    try peer.elapse(.seconds(5))
    for handler in handlers { XCTAssertEqual(handler.joinedEvents, Self.answered) }
  }

  /// The server ends the connection with the early data before it, or the client, has completed the handshake.
  func testServerThatClosesDuringTheHandshake() async throws {
    for isHeld in [false, true] {
      let peer = try self.next(after: try await self.first())
      peer.onRequest = nil
      peer.network = { direction, datagram in direction == .toServer ? [datagram] : [] }
      peer.runClient()
      let handlers = [Self.safe, Self.head].map { self.start($0, on: peer) }
      try peer.run()
      XCTAssertEqual(peer.requests[0]?.isEarly, true)
      peer.network = { [$1] }
      peer.close(isHeld ? 2 : 0, reason: "full", isApplication: false)
      try peer.run()
      for handler in handlers {
        XCTAssertEqual(handler.events.last, .failed(.unavailable, isUnprocessed: true))
        XCTAssertEqual(handler.failure?.keepsTransparentRetry, true)
        XCTAssertTrue(handler.message.contains("full"), handler.message)
      }
      XCTAssertEqual(peer.delegate.events.last, .closed(.unavailable))
      XCTAssertEqual(peer.delegate.closedStreams, 2)
      XCTAssertEqual(peer.delegate.unfitReasons, [])
    }
  }

  func testTicketsKnowWhenTheyExpire() async throws {
    let earlier = try await self.first()
    let ticket = try XCTUnwrap(earlier.ticket)
    let expiry = ticket.certificateExpiry
    XCTAssertTrue((1...Int(Int32.max)).contains(expiry), "\(expiry)")
    // What RFC 8446 allows.
    XCTAssertTrue((1...604_800).contains(ticket.lifetime), "\(ticket.lifetime)")
    XCTAssertTrue(ticket.isUsable(at: ticket.receiptTime))
    let peer = try self.next(after: earlier)
    try peer.connect()
    XCTAssertEqual(
      peer.ticket?.certificateExpiry,
      expiry,
      "a resumed session does not show the certificate"
    )
  }

  func testCancellationBeforeTheHandshake() async throws {
    let peer = try self.next(after: try await self.first())
    peer.runClient()
    let sent = self.start(Self.safe, on: peer)
    let held = self.start(Self.head, on: peer)
    peer.runClient()
    sent.stream?.cancel()
    held.stream?.cancel()
    try peer.run()
    XCTAssertEqual(sent.events, [.started])
    XCTAssertEqual(held.events, [])
    XCTAssertNil(peer.requests[4], "what was held back and cancelled is never sent")
    XCTAssertEqual(peer.delegate.closedStreams, 2)
    XCTAssertTrue(peer.connection.session.http.streams.isEmpty)
  }

  func testDrainBeforeTheHandshake() async throws {
    let peer = try self.next(after: try await self.first())
    peer.runClient()
    let held = self.start(Self.head, on: peer)
    peer.connection.drain()
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(held.joinedEvents, Self.answered)
    XCTAssertEqual(peer.delegate.events.last, .closed(nil))
  }

  func testCloseBeforeTheHandshake() async throws {
    let peer = try self.next(after: try await self.first())
    peer.runClient()
    let handlers = [Self.safe, Self.head].map { self.start($0, on: peer) }
    peer.connection.close(failing: ConnectError(code: .aborted, message: "closed"))
    try peer.run()
    XCTAssertEqual(handlers.map(\.failure?.error.code), [.aborted, .aborted])
    XCTAssertEqual(peer.delegate.closedStreams, 2)
  }

  func testBodiesLargerThanTheWindow() async throws {
    let peer = try self.next(after: try await self.first())
    peer.runClient()
    var request = Self.safe
    let body = String(repeating: "0123456789abcdef", count: 100_000)
    request.body = .complete(ByteBuffer(string: body))
    let handler = self.start(request, on: peer)
    try peer.elapse(.seconds(2))
    XCTAssertEqual(handler.joinedEvents.count, 4)
    XCTAssertEqual(peer.requests[0]?.text == body, true)
  }

  func testLossOfTheFirstDatagrams() async throws {
    for lost in 1...3 {
      let peer = try self.next(after: try await self.first())
      var count = 0
      peer.network = { direction, datagram in
        guard direction == .toServer else { return [datagram] }
        count += 1
        return count <= lost ? [] : [datagram]
      }
      peer.runClient()
      let handlers = [Self.safe, Self.head].map { self.start($0, on: peer) }
      try peer.elapse(.seconds(10))
      for handler in handlers { XCTAssertEqual(handler.joinedEvents, Self.answered, "\(lost) lost") }
    }
  }
}
