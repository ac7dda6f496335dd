internal import CQUICPeer
internal import Connect
internal import NIOCore
internal import XCTest

@testable internal import ConnectHTTP3

/// Responses that are too large or not as they should be, frame by frame from a server that is none of HTTP/3.
final class HTTP3ResponseTests: XCTestCase {
  private func makePeer(limit: Int = 64 << 10, isPlain: Bool = false) async throws -> HTTP3TestPeer {
    let peer = try HTTP3TestPeer(
      try await SharedCertificates.shared.get(),
      limits: HTTP3SessionLimits(maximumHeaderListSize: limit)
    ) { $0.plain = isPlain ? 1 : 0 }
    try peer.connect()
    return peer
  }

  func testHeaderListThatIsTooLarge() async throws {
    let peer = try await self.makePeer(limit: 1000)
    peer.onRequest = { peer, stream in
      peer.respond(stream, 200, stream == 0 ? [("x", String(repeating: "y", count: 2000))] : [], body: "z")
    }
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(handler.events, [.started, .failed(.resourceExhausted, isUnprocessed: false)])
    let limit = "over the limit of 1000 bytes (maxHeaderListSize)"
    XCTAssertTrue(handler.message.hasSuffix(limit), handler.message)
    XCTAssertEqual(peer.delegate.closedStreams, 1)
    let next = RecordingHandler()
    peer.startUnary(next)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(next.events.last, .end([:]))
  }

  func testTrailersThatAreTooLarge() async throws {
    let peer = try await self.makePeer(limit: 1000)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    peer.respond(0, body: "x", trailers: [("x", String(repeating: "y", count: 2000))])
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(handler.events.last, .failed(.resourceExhausted, isUnprocessed: false))
    XCTAssertEqual(handler.failure?.error.httpStatus, nil)
  }

  // MARK: Frames

  /// HEADERS with `:status` 200 and literal fields.
  private static func head(_ fields: [(String, String)] = []) -> [UInt8] {
    // The static table's entry 25 is `:status` 200.
    var block: [UInt8] = [0, 0, 0xc0 | 25]
    for (name, value) in fields {
      // A literal with a literal name, no Huffman code. Lengths from 7 on go on in the next byte.
      let count = UInt8(name.utf8.count)
      block += count < 7 ? [0x20 | count] : [0x27, count - 7]
      block += name.utf8 + [UInt8(value.utf8.count)] + value.utf8
    }
    return self.frame(1, block)
  }

  private static func frame(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
    [type, 0x40 | UInt8(content.count >> 8), UInt8(content.count & 0xff)] + content
  }

  /// What a server's control stream begins with: its type and SETTINGS.
  private static let control: [UInt8] = [0] + frame(4, [])

  func testFramesByHandMakeAResponse() async throws {
    let peer = try await self.makePeer(isPlain: true)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    peer.writeRaw(peer.openRaw(), Self.control)
    // Byte by byte, each in a packet of its own.
    let bytes =
      Self.head([("abc", "d")]) + Self.frame(0, Array("body".utf8))
      + Self.frame(1, [0, 0, 0x21, 0x74, 1, 0x31])
    for byte in bytes {
      peer.writeRaw(0, [byte])
      try peer.run()
    }
    peer.writeRaw(0, [], isEnd: true)
    try peer.run()
    XCTAssertEqual(
      handler.joinedEvents,
      [.started, .head(200, ["abc": ["d"]]), .bytes("body"), .end(["t": ["1"]])]
    )
  }

  func testHeaderBlocksThatComeInTurns() async throws {
    let peer = try await self.makePeer(isPlain: true)
    let handlers = (0..<3).map { _ in RecordingHandler() }
    for handler in handlers { peer.startUnary(handler) }
    try peer.run()
    peer.writeRaw(peer.openRaw(), Self.control)
    let blocks = (0..<3).map { Self.head([("abc", "\($0)"), ("def", "\($0)")]) }
    for index in 0..<(blocks.map(\.count).max() ?? 0) {
      for (stream, block) in blocks.enumerated() where index < block.count {
        peer.writeRaw(Int64(4 * stream), [block[index]])
        try peer.run()
      }
    }
    for (index, handler) in handlers.enumerated() {
      XCTAssertEqual(handler.events, [.started, .head(200, ["abc": ["\(index)"], "def": ["\(index)"]])])
    }
  }

  func testBrokenResponsesFailTheirStreamAlone() async throws {
    let bad: [(String, [UInt8])] = [
      ("upper case", Self.head([("ABC", "d")])),
      ("content-length", Self.head([("content-length", "3")]) + Self.frame(0, [1, 2, 3, 4])),
      ("connection header", Self.head([("connection", "close")])),
      ("two statuses", Self.frame(1, [0, 0, 0xc0 | 25, 0xc0 | 25])),
      ("no status", Self.frame(1, [0, 0])),
    ]
    for (what, bytes) in bad {
      let peer = try await self.makePeer(isPlain: true)
      let handler = RecordingHandler()
      peer.startUnary(handler)
      let other = RecordingHandler()
      peer.startUnary(other)
      try peer.run()
      peer.writeRaw(peer.openRaw(), Self.control)
      peer.writeRaw(0, bytes, isEnd: true)
      try peer.elapse(.milliseconds(50))
      XCTAssertEqual(handler.events.last, .failed(.internalError, isUnprocessed: false), what)
      XCTAssertTrue(handler.message.contains("H3_MESSAGE_ERROR"), "\(what): \(handler.message)")
      peer.writeRaw(4, Self.head() + Self.frame(0, Array("fine".utf8)), isEnd: true)
      try peer.elapse(.milliseconds(50))
      XCTAssertEqual(other.joinedEvents, [.started, .head(200, [:]), .bytes("fine"), .end([:])], what)
    }
  }

  /// The call whose response is broken gets `internal`. The other one gets `unavailable`, which retries take; so do both
  /// if no response is broken.
  func testBrokenConnectionsFailAllCallsOnce() async throws {
    let bad: [(String, stream: [UInt8], control: [UInt8])] = [
      ("DATA first", Self.frame(0, [1]), Self.control),
      ("SETTINGS on a request", Self.frame(4, []), Self.control),
      ("dynamic table", Self.frame(1, [1, 0, 0x80]), Self.control),
      ("no SETTINGS", [], [0] + Self.frame(7, [0])),
      ("two SETTINGS", [], Self.control + Self.frame(4, [])),
      ("frame of HTTP/2", [], Self.control + Self.frame(6, [])),
    ]
    for (what, stream, control) in bad {
      let peer = try await self.makePeer(isPlain: true)
      let handlers = [RecordingHandler(), RecordingHandler()]
      for handler in handlers { peer.startUnary(handler) }
      try peer.run()
      peer.writeRaw(peer.openRaw(), control)
      if !stream.isEmpty { peer.writeRaw(0, stream) }
      try peer.elapse(.milliseconds(50))
      let codes: [Code] = [stream.isEmpty ? .unavailable : .internalError, .unavailable]
      for (handler, code) in zip(handlers, codes) {
        XCTAssertEqual(handler.events, [.started, .failed(code, isUnprocessed: false)], what)
        XCTAssertTrue(
          handler.message.hasPrefix("https://localhost broke the HTTP/3 protocol: "),
          "\(what): \(handler.message)"
        )
        let cause = handler.failure?.error.exception as? ConnectError
        XCTAssertEqual(cause?.code, code == .unavailable ? .internalError : nil, what)
      }
      XCTAssertEqual(peer.delegate.events.last, .closed(.internalError), what)
      XCTAssertNotEqual(peer.serverError, 0, "\(what): the server was told")
    }
  }

  /// A call that is alone meets the same peer again.
  func testABrokenConnectionWithOneCall() async throws {
    let peer = try await self.makePeer(isPlain: true)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    peer.writeRaw(peer.openRaw(), Self.control + Self.frame(4, []))
    try peer.elapse(.milliseconds(50))
    XCTAssertEqual(handler.events, [.started, .failed(.internalError, isUnprocessed: false)])
  }

  func testEndlessInformationalResponses() async throws {
    let peer = try await self.makePeer(isPlain: true)
    let handlers = [RecordingHandler(), RecordingHandler()]
    for handler in handlers { peer.startUnary(handler) }
    try peer.run()
    peer.writeRaw(peer.openRaw(), Self.control)
    // `:status: 103` of QPACK's static table.
    let hint = Self.frame(1, [0, 0, 0xc0 | 24])
    peer.writeRaw(
      4,
      (0..<100).flatMap { _ in hint } + Self.head() + Self.frame(0, Array("fine".utf8)),
      isEnd: true
    )
    peer.writeRaw(0, (0..<150).flatMap { _ in hint })
    try peer.elapse(.milliseconds(50))
    XCTAssertEqual(handlers[0].events, [.started, .failed(.internalError, isUnprocessed: false)])
    XCTAssertTrue(handlers[0].message.contains("more than 100 informational"), handlers[0].message)
    XCTAssertEqual(handlers[1].joinedEvents, [.started, .head(200, [:]), .bytes("fine"), .end([:])])
  }

  func testResponseThatEndsWithoutAHeadFails() async throws {
    let peer = try await self.makePeer(isPlain: true)
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.run()
    peer.writeRaw(peer.openRaw(), Self.control)
    peer.writeRaw(0, [], isEnd: true)
    try peer.elapse(.milliseconds(100))
    guard case .failed(_, isUnprocessed: false)? = handler.events.last else {
      return XCTFail("\(handler.events)")
    }
  }
}
