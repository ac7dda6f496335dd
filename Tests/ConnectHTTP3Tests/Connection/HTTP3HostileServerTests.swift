internal import CQUICPeer
internal import Connect
internal import ConnectNIO
internal import NIOCore
internal import TestSupport
internal import XCTest

@testable internal import ConnectHTTP3

/// Servers, and others on the path, that do what QUIC and HTTP/3 do not allow, or hardly foresee.
final class HTTP3HostileServerTests: XCTestCase {
  private func makePeer(
    keepalive: HTTP3Keepalive = HTTP3Keepalive(),
    _ change: (inout quic_peer_options) -> Void = { _ in }
  ) async throws -> HTTP3TestPeer {
    try HTTP3TestPeer(try await SharedCertificates.shared.get(), keepalive: keepalive, change)
  }

  // MARK: The handshake

  /// The confirmation comes in the same read as the server's part of the handshake.
  func testHandshakeThatIsConfirmedTooEarly() async throws {
    for repeats in [false, true] {
      let peer = try await self.makePeer { $0.confirms_early = 1 }
      peer.coalesces = true
      var first: [UInt8]?
      peer.network = { direction, datagram in
        guard repeats, direction == .toClient else { return [datagram] }
        first = first ?? datagram
        return [datagram, first ?? []]
      }
      try peer.elapse(.milliseconds(100))
      XCTAssertEqual(peer.handshakeError?.code, .unavailable)
      XCTAssertEqual(peer.handshakeError?.message, "https://localhost broke QUIC: ERR_PROTO")
      XCTAssertEqual(peer.delegate.events, [])
      XCTAssertNotEqual(peer.serverError, 0, "the server was told")
    }
  }

  // MARK: Datagrams of others

  /// Completes the handshake, after which the server is out of reach.
  ///
  /// - Returns: How datagrams to the client begin: with a byte, and the client's identifier of the connection.
  private func connectAndCut(_ peer: HTTP3TestPeer) throws -> [UInt8] {
    var start: [UInt8] = []
    peer.network = { direction, datagram in
      if direction == .toClient, let first = datagram.first, first & 0x80 == 0 {
        start = Array(datagram.prefix(9))
      }
      return [datagram]
    }
    try peer.connect()
    try peer.elapse(.seconds(1))
    XCTAssertEqual(start.count, 9)
    peer.network = { _, _ in [] }
    return start
  }

  /// Sends the client datagrams that look as if they were the server's.
  private func forge(_ peer: HTTP3TestPeer, _ start: [UInt8], for duration: TimeAmount) throws {
    var random = SeededGenerator(quietly: 11)
    var elapsed = TimeAmount.zero
    while elapsed < duration {
      peer.injectAtClient(start + (0..<60).map { _ in UInt8.random(in: 0...255, using: &random) })
      try peer.elapse(.milliseconds(50))
      elapsed = elapsed + .milliseconds(50)
    }
  }

  func testForgedDatagramsAreNoSignOfLife() async throws {
    let peer = try await self.makePeer(keepalive: HTTP3Keepalive(unacknowledged: .seconds(5)))
    let start = try self.connectAndCut(peer)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try self.forge(peer, start, for: .milliseconds(4900))
    XCTAssertEqual(handler.events, [.started])
    try self.forge(peer, start, for: .milliseconds(200))
    XCTAssertEqual(handler.events, [.started, .failed(.unavailable, isUnprocessed: false)])
    XCTAssertTrue(handler.message.contains("has acknowledged nothing for 5.0 seconds"), handler.message)
  }

  func testForgedDatagramsDoNotLiftSuspicion() async throws {
    let peer = try await self.makePeer()
    let start = try self.connectAndCut(peer)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try self.forge(peer, start, for: .milliseconds(500))
    handler.stream?.expire()
    XCTAssertEqual(peer.delegate.events.last, .suspect)
    try self.forge(peer, start, for: .milliseconds(500))
    XCTAssertFalse(peer.delegate.events.contains(.alive))
    peer.network = { [$1] }
    try peer.elapse(.seconds(3))
    XCTAssertTrue(peer.delegate.events.contains(.alive))
  }

  // MARK: Many resets

  /// All streams are reset in one read.
  func testManyResetsAtTheSameTime() async throws {
    let count = 1000
    let peer = try await self.makePeer {
      $0.streams = UInt64(count)
      $0.connection_window = 4 << 20
    }
    try peer.connect()
    let handlers = (0..<count).map { _ in RecordingHandler() }
    for handler in handlers { peer.startUnary(handler) }
    while peer.requests.count < count || !peer.requests.values.allSatisfy(\.isComplete) {
      guard peer.now < 60_000_000_000 else { return XCTFail("\(peer.requests.count) requests") }
      try peer.elapse(.milliseconds(10))
    }
    try peer.elapse(.seconds(1))
    for index in 0..<count { peer.reset(4 * Int64(index), 0x10b) }
    peer.coalesces = true
    let reads = peer.clientReadCount
    try peer.run()
    XCTAssertLessThan(peer.clientReadCount, reads + 4)
    try peer.elapse(.seconds(2))
    for handler in handlers {
      XCTAssertEqual(handler.events, [.started, .failed(.unavailable, isUnprocessed: true)])
    }
    XCTAssertEqual(peer.delegate.closedStreams, count)
    peer.onRequest = { $0.respond($1, body: "x") }
    let last = RecordingHandler()
    peer.startUnary(last)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(last.joinedEvents, [.started, .head(200, [:]), .bytes("x"), .end([:])])
    XCTAssertEqual(peer.connection.state.phase, .active)
  }
}
