internal import CQUICPeer
internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import TestSupport
internal import XCTest

@testable internal import ConnectHTTP3

/// Damaged datagrams and damaged frames: whatever comes, each call ends at most once, and the connection's end ends all of them.
/// The C libraries see what the client's own code never looks at, hence under address sanitizer, too (`make sanitize`).
final class HTTP3FuzzTests: XCTestCase {
  /// How many damaged datagrams, and how many damaged pieces of HTTP/3. `CONNECT_FUZZ_ROUNDS` sets another number.
  private let rounds = ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap(Int.init) ?? 4_000

  /// A few random changes: other bytes, cuts, insertions, repetitions.
  private func damaged(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let index = Int.random(in: 0...bytes.count, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0 where index < bytes.count: bytes[index] = .random(in: 0 ... .max, using: &random)
      case 1 where index < bytes.count: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 2: bytes.removeLast(bytes.count - index)
      case 3: bytes.insert(.random(in: 0 ... .max, using: &random), at: index)
      case 4:
        bytes.insert(contentsOf: bytes.prefix(Int.random(in: 0...20, using: &random)), at: index)
      default: break
      }
    }
    return bytes
  }

  private func check(_ peer: HTTP3TestPeer, _ handlers: [RecordingHandler], _ what: String) {
    if peer.connection.state.phase == .closed {
      for handler in handlers { XCTAssertTrue(handler.isOver, "\(what): \(handler.events)") }
      if case .success? = peer.handshake {
        let ends = peer.delegate.events.count { if case .closed = $0 { true } else { false } }
        XCTAssertEqual(ends, 1, what)
      }
    }
  }

  func testDamagedDatagrams() async throws {
    let certificates = try await SharedCertificates.shared.get()
    var random = SeededGenerator()
    var sent = 0
    var completed = 0
    let first = try HTTP3TestPeer(certificates) { $0.tickets = 1 }
    try first.connect()
    while sent < self.rounds {
      // Half of the connections begin with early data, which the server takes or not.
      let isEarly = Bool.random(using: &random)
      let rejectsEarlyData = Bool.random(using: &random)
      let peer = try HTTP3TestPeer(certificates, after: isEarly ? first : nil) {
        $0.tickets = isEarly ? 1 : 0
        $0.rejects_early_data = rejectsEarlyData ? 1 : 0
      }
      var seen: [[UInt8]] = []
      peer.onRequest = { peer, stream in peer.respond(stream, body: String(repeating: "x", count: 5000)) }
      peer.network = { [unowned peer] direction, datagram in
        guard direction == .toClient else { return [datagram] }
        seen.append(datagram)
        for _ in 0..<10 {
          // Also of what came before, and so of packets of another kind.
          peer.injectAtClient(self.damaged(seen.randomElement(using: &random) ?? datagram, &random))
          sent += 1
        }
        return [datagram]
      }
      let handlers = (0..<3).map { _ in RecordingHandler() }
      if isEarly { peer.runClient() } else { try peer.elapse(.milliseconds(50)) }
      for (index, handler) in handlers.enumerated() {
        let body = HTTPStreamRequest.Body.complete(ByteBuffer(string: "hello"))
        _ = peer.start(handler, body: body, hasNoSideEffects: index > 0)
      }
      try peer.elapse(.milliseconds(200))
      self.check(peer, handlers, "datagrams")
      completed += handlers.count { $0.events.last == .end([:]) }
      peer.network = { [$1] }
      peer.connection.close(failing: ConnectError(code: .canceled, message: "over"))
      try peer.run()
      self.check(peer, handlers, "closed")
    }
    // Damage is found by QUIC's own means, and calls go on.
    XCTAssertGreaterThan(completed, 0)
  }

  func testDamagedFrames() async throws {
    let certificates = try await SharedCertificates.shared.get()
    var random = SeededGenerator()
    // HEADERS, DATA and HEADERS; SETTINGS and GOAWAY; instructions of QPACK.
    let response: [UInt8] =
      [1, 11, 0, 0, 0xd9, 0x23, 0x61, 0x62, 0x63, 2, 0x78, 0x79, 0x54, 0, 5, 1, 2, 3, 4, 5]
      + [1, 7, 0, 0, 0x21, 0x74, 2, 0x31, 0x32]
    let control: [UInt8] = [0, 4, 4, 6, 0x44, 0, 7, 0, 7, 1, 0]
    let encoder: [UInt8] = [2, 0x3f, 0xe1, 0x1f, 0xc0, 1, 0x61, 0x43, 0x61, 0x62, 0x63, 1, 0x62]
    let decoder: [UInt8] = [3, 0x80, 0x41, 1]
    var written = 0
    while written < self.rounds {
      let peer = try HTTP3TestPeer(certificates) {
        $0.plain = 1
        $0.uni_streams = 3
      }
      try peer.connect()
      let handlers = (0..<8).map { _ in RecordingHandler() }
      for handler in handlers { peer.startUnary(handler) }
      try peer.run()
      if Bool.random(using: &random) { peer.writeRaw(peer.openRaw(), control) }
      for piece in [control, encoder, decoder, response] where Int.random(in: 0..<3, using: &random) == 0 {
        peer.writeRaw(
          peer.openRaw(),
          self.damaged(piece, &random),
          isEnd: Int.random(in: 0..<8, using: &random) == 0
        )
        written += 1
      }
      for stream in handlers.indices {
        peer.writeRaw(Int64(4 * stream), self.damaged(response, &random), isEnd: Bool.random(using: &random))
        written += 1
        if stream % 3 == 0 { try peer.elapse(.milliseconds(2)) }
      }
      try peer.elapse(.milliseconds(20))
      self.check(peer, handlers, "frames")
      for handler in handlers where !handler.isOver { handler.stream?.cancel() }
      try peer.run()
      peer.connection.close(failing: ConnectError(code: .canceled, message: "over"))
      try peer.run()
    }
  }

  /// Frames one behind the other without end, in random pieces.
  func testRandomBytesOnStreams() async throws {
    let certificates = try await SharedCertificates.shared.get()
    var random = SeededGenerator()
    for _ in 0..<max(self.rounds / 50, 1) {
      let peer = try HTTP3TestPeer(certificates) { $0.plain = 1 }
      try peer.connect()
      let handler = RecordingHandler()
      peer.startUnary(handler)
      try peer.run()
      peer.writeRaw(peer.openRaw(), [0, 4, 0])
      for _ in 0..<20 {
        let count = Int.random(in: 1...40, using: &random)
        peer.writeRaw(0, (0..<count).map { _ in UInt8.random(in: 0...20, using: &random) })
        try peer.elapse(.milliseconds(1))
      }
      self.check(peer, [handler], "random")
      XCTAssertLessThan(peer.connection.session.http.streams[0]?.response.inbox.readableBytes ?? 0, 1 << 20)
    }
  }
}
