internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectHTTP3

/// What the system does for datagrams: it puts those together that have come, cuts those that are sent, and marks them.
final class HTTP3OffloadTests: XCTestCase {
  func testDatagramsThatTheSystemHasPutTogether() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    peer.coalesces = true
    try peer.connect()
    let body = String(repeating: "0123456789", count: 100_000)
    peer.onRequest = { peer, stream in peer.respond(stream, body: body, trailers: [("x-end", "yes")]) }
    let handler = RecordingHandler()
    peer.startUnary(handler)
    try peer.elapse(.seconds(5))
    XCTAssertEqual(
      handler.joinedEvents == [.started, .head(200, [:]), .bytes(body), .end(["x-end": ["yes"]])],
      true,
      "\(handler.events.count) events, \(handler.message)"
    )
    XCTAssertLessThan(peer.clientReadCount, peer.toClientCount / 3)
  }

  /// The first datagrams ask whether the path keeps marks (RFC 9000, section 13.4.2). A server that says nothing of them gets no
  /// more.
  func testCongestionMarks() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    XCTAssertEqual(peer.clientMarks.first, .transportCapableFlag0)
    peer.onRequest = { peer, stream in peer.respond(stream, body: "x") }
    for _ in 0..<20 {
      peer.startUnary(RecordingHandler())
      try peer.elapse(.milliseconds(100))
    }
    XCTAssertEqual(peer.clientMarks.last, .transportNotCapable)
  }

  /// An interface for which the system does not cut datagrams: connections that follow give them one by one.
  func testSystemThatRefusesToCut() async throws {
    defer { SegmentationOffload.set(true) }
    let certificates = try await SharedCertificates.shared.get()
    for isFirst in [true, false] {
      let peer = try HTTP3TestPeer(certificates)
      try peer.connect()
      try peer.channel.pipeline.syncOperations.addHandler(Refusal(), position: .first)
      let handler = RecordingHandler()
      peer.onRequest = { peer, stream in peer.respond(stream, body: "x") }
      peer.startUnary(handler, body: String(repeating: "x", count: 10_000))
      try peer.elapse(.seconds(1))
      guard isFirst else {
        XCTAssertEqual(handler.joinedEvents.last, .end([:]))
        continue
      }
      XCTAssertEqual(handler.failure?.error.code, .unavailable)
      XCTAssertEqual(
        handler.failure?.error.message,
        "the HTTP/3 connection to https://localhost broke: Input/output error"
      )
      XCTAssertFalse(SegmentationOffload.isUsed)
    }
  }

  private final class Refusal: ChannelOutboundHandler {
    typealias OutboundIn = AddressedEnvelope<ByteBuffer>

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard self.unwrapOutboundIn(data).metadata?.segmentSize != nil else {
        context.write(data, promise: promise)
        return
      }
      promise?.fail(IOError(errnoCode: 5, reason: "sendmsg"))
      context.close(promise: nil)
    }
  }

  func testDatagramsThatTheSystemHasToCut() {
    var output = HTTP3Output()
    for count in [1200, 1200, 1200, 500, 1200, 1300] {
      _ = output.appendDatagram(capacity: 1452) { bytes in
        for index in 0..<count { bytes[index] = 1 }
        return .init(count: count)
      }
    }
    let all = output.takeAll()
    XCTAssertEqual(all.map(\.segmentSize), [1200, nil, nil])
    XCTAssertEqual(all.map(\.bytes.readableBytes), [4100, 1200, 1300])
    output.recycle()
    XCTAssertTrue(output.isEmpty)
  }

  /// A datagram that tries the path is given to the system alone.
  func testDatagramsAroundProbe() {
    var output = HTTP3Output()
    for (count, isProbe) in [(1200, false), (1406, true), (1200, false), (1200, false)] {
      _ = output.appendDatagram(capacity: 1452) { bytes in
        for index in 0..<count { bytes[index] = 1 }
        return .init(count: count, isProbe: isProbe)
      }
    }
    let all = output.takeAll()
    XCTAssertEqual(all.map(\.isProbe), [false, true, false])
    XCTAssertEqual(all.map(\.segmentSize), [nil, nil, 1200])
  }
}
