internal import Connect
internal import NIOCore
internal import TestSupport
internal import XCTest

@testable internal import ConnectHTTP3

/// Networks that lose, repeat, reorder and damage datagrams.
final class HTTP3NetworkTests: XCTestCase {
  /// Makes ten calls with bodies in both directions, each of which has to succeed.
  private func exchange(
    _ what: String,
    limit: TimeAmount = .seconds(60),
    _ network: @escaping (HTTP3TestPeer.Direction, [UInt8]) -> [[UInt8]]
  ) async throws {
    let peer = try HTTP3TestPeer(
      try await SharedCertificates.shared.get(),
      keepalive: HTTP3Keepalive(unacknowledged: nil)
    )
    peer.network = network
    let body = String(repeating: "some text ", count: 3000)
    peer.onRequest = { peer, stream in
      peer.respond(stream, body: peer.requests[stream]?.text ?? "", trailers: [("grpc-status", "0")])
    }
    while peer.handshake == nil, peer.now < UInt64(limit.nanoseconds) {
      try peer.elapse(.milliseconds(10))
    }
    XCTAssertNil(peer.handshakeError, what)
    let handlers = (0..<10).map { _ in RecordingHandler() }
    for handler in handlers {
      let stream = peer.start(handler, body: .streamed)
      stream.write(ByteBuffer(string: body))
      stream.finish(trailers: [:])
    }
    while !handlers.allSatisfy(\.isOver), peer.now < UInt64(limit.nanoseconds) {
      try peer.elapse(.milliseconds(10))
    }
    for handler in handlers {
      XCTAssertEqual(
        handler.joinedEvents.filter { $0 != .writable } == [
          .started, .head(200, [:]), .bytes(body), .end(["grpc-status": ["0"]]),
        ],
        true,
        "\(what): \(handler.events.count) \(handler.message)"
      )
    }
  }

  func testLoss() async throws {
    for percentage in [1, 10, 30] {
      var random = SeededGenerator(seed: UInt64(percentage))
      try await self.exchange("\(percentage) %") { _, datagram in
        Int.random(in: 0..<100, using: &random) < percentage ? [] : [datagram]
      }
    }
  }

  func testDuplicates() async throws {
    try await self.exchange("twice") { [$1, $1] }
  }

  func testReordering() async throws {
    var random = SeededGenerator(seed: 3)
    var held: [HTTP3TestPeer.Direction: [[UInt8]]] = [:]
    try await self.exchange("reordered") { direction, datagram in
      // Some wait for one to five others.
      if Int.random(in: 0..<4, using: &random) == 0, held[direction, default: []].count < 5 {
        held[direction, default: []].append(datagram)
        return []
      }
      defer { held[direction] = [] }
      return [datagram] + (held[direction] ?? []).shuffled(using: &random)
    }
  }

  func testDamage() async throws {
    var random = SeededGenerator(seed: 4)
    try await self.exchange("damaged") { _, datagram in
      guard Int.random(in: 0..<10, using: &random) == 0, !datagram.isEmpty else { return [datagram] }
      var damaged = datagram
      damaged[Int.random(in: 0..<damaged.count, using: &random)] ^=
        1 << UInt8.random(in: 0..<8, using: &random)
      return [damaged]
    }
  }

  func testGarbage() async throws {
    var random = SeededGenerator(seed: 5)
    try await self.exchange("garbage") { direction, datagram in
      guard direction == .toClient else { return [datagram] }
      let count = Int.random(in: 1...1452, using: &random)
      return [(0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }, datagram]
    }
  }

  /// A path on which larger datagrams than those that QUIC demands are lost.
  func testSmallestPath() async throws {
    try await self.exchange("1200 bytes") { _, datagram in datagram.count > 1200 ? [] : [datagram] }
  }

  /// Nothing tells that the path has changed but that nobody answers.
  func testPathThatGetsSmaller() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    peer.onRequest = { peer, stream in peer.respond(stream, body: "small") }
    try peer.elapse(.seconds(1))
    peer.network = { _, datagram in datagram.count > 1280 ? [] : [datagram] }
    let handler = RecordingHandler()
    peer.startUnary(handler, body: String(repeating: "x", count: 20_000))
    try peer.elapse(.seconds(2))
    XCTAssertEqual(handler.joinedEvents, [.started, .head(200, [:]), .bytes("small"), .end([:])])
  }

  /// Also when nothing is left of TLS: keys come from those before them.
  func testKeyUpdates() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    XCTAssertNil(peer.connection.session.tls.handle)
    peer.onRequest = { peer, stream in peer.respond(stream, body: "x") }
    for _ in 0..<5 {
      let handler = RecordingHandler()
      peer.startUnary(handler)
      try peer.elapse(.seconds(1))
      XCTAssertEqual(handler.joinedEvents.last, .end([:]))
      peer.updateKey()
      try peer.elapse(.seconds(1))
    }
    XCTAssertEqual(peer.serverError, 0)
  }
}
