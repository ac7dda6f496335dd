internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// Whole calls over a connection that works.
final class HTTP2ExchangeTests: XCTestCase {
  func testHandshake() throws {
    let peer = try HTTP2TestPeer(HTTP2Configuration(maxHeaderListSize: 1000), settings: nil)
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.settings, .windowUpdate])
    let expected: [[UInt8]] = [
      [0, 2, 0, 0, 0, 0], [0, 4, 0, 16, 0, 0], [0, 5, 0, 0, 64, 0], [0, 6, 0, 0, 3, 232],
    ]
    XCTAssertEqual(frames.first?.payload, expected.flatMap { $0 })
    XCTAssertEqual(frames.last?.streamID, 0)
    XCTAssertEqual(frames.last?.number, (16 << 20) - 65_535)
    XCTAssertEqual(peer.delegate.events, [])
    try peer.send(.settings(maxConcurrentStreams: 7))
    XCTAssertEqual(peer.delegate.events, [.canServe(7)])
    XCTAssertEqual(try peer.sent(), [.settingsAck])
  }

  func testConcurrentStreamsUpdates() throws {
    let peer = try HTTP2TestPeer(settings: .settings())
    XCTAssertEqual(peer.delegate.events, [.canServe(Int(Int32.max))])
    try peer.send(.settings(maxConcurrentStreams: 2))
    try peer.send(.settings(maxConcurrentStreams: 2))
    try peer.send(.settings(maxConcurrentStreams: 0))
    XCTAssertEqual(peer.delegate.events, [.canServe(Int(Int32.max)), .canServe(2), .canServe(0)])
  }

  func testUnary() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(
      handler,
      target: "/demo.Service/Method?q=%20",
      headers: ["content-type": ["application/proto"], "x-many": ["1", "2"]],
      body: .complete(ByteBuffer(string: "hello"))
    )
    XCTAssertEqual(handler.events, [])
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.headers, .data])
    XCTAssertEqual(frames.map(\.streamID), [1, 1])
    XCTAssertEqual(frames.map(\.isEndStream), [false, true])
    XCTAssertEqual(frames[1].payload, Array("hello".utf8))
    let fields = peer.decoder.decode(frames[0].payload).map { "\($0.name)=\($0.value)" }
    XCTAssertEqual(
      fields,
      [
        ":method=POST", ":scheme=http", ":authority=demo.example:8080", ":path=/demo.Service/Method?q=%20",
        "content-type=application/proto", "x-many=1", "x-many=2", "content-length=5",
      ]
    )
    XCTAssertEqual(handler.events, [.started])
    XCTAssertEqual(handler.info?.version, .http2)
    XCTAssertEqual(handler.info?.isReused, false)
    XCTAssertEqual(handler.info?.remoteAddress, "127.0.0.1:8080")

    try peer.send(
      .headers(1, [(":status", "200"), ("content-type", "application/proto"), ("x", "1"), ("x", "2")]),
      .data(1, "wor"),
      .data(1, "ld", end: true)
    )
    XCTAssertEqual(
      handler.joinedEvents,
      [
        .started, .head(200, ["content-type": ["application/proto"], "x": ["1", "2"]]), .bytes("world"),
        .end([:]),
      ]
    )
    XCTAssertEqual(peer.delegate.events, [.canServe(100), .closedStream])
    stream.cancel()
    stream.write(ByteBuffer(string: "late"))
    stream.finish(trailers: [:])
    stream.consume(5)
    XCTAssertEqual(try peer.sent(), [])

    let second = RecordingHandler()
    _ = peer.startUnary(second)
    XCTAssertEqual(try peer.sent().map(\.streamID), [3, 3])
    XCTAssertEqual(second.info?.isReused, true)
  }

  func testGetHasNoBody() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.start(handler, method: .get, headers: [:], body: .complete(ByteBuffer()))
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.headers])
    XCTAssertTrue(frames[0].isEndStream)
    XCTAssertEqual(
      peer.decoder.decode(frames[0].payload).map(\.name),
      [":method", ":scheme", ":authority", ":path"]
    )
    try peer.send(.headers(1, [(":status", "404"), ("a", "b")], end: true))
    XCTAssertEqual(handler.events, [.started, .head(404, ["a": ["b"]]), .end([:])])
  }

  func testPostWithoutBodySaysSo() throws {
    let peer = try HTTP2TestPeer()
    _ = peer.start(RecordingHandler(), headers: [:], body: .complete(ByteBuffer()))
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.isEndStream), [true])
    XCTAssertEqual(peer.decoder.decode(frames[0].payload).last?.name, "content-length")
    XCTAssertEqual(peer.decoder.decode(frames[0].payload).last?.value, "0")
  }

  func testTrailersBothWays() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    XCTAssertEqual(try peer.sent().map(\.kind), [.headers])
    stream.write(ByteBuffer(string: "a"))
    XCTAssertEqual(try peer.sent().map(\.payload), [Array("a".utf8)])
    stream.write(ByteBuffer(string: "b"))
    stream.write(ByteBuffer(string: "c"))
    stream.finish(trailers: ["x-sum": ["42"]])
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.data, .headers])
    XCTAssertEqual(frames[0].payload, Array("bc".utf8))
    XCTAssertEqual(frames.map(\.isEndStream), [false, true])
    XCTAssertEqual(peer.decoder.decode(frames[1].payload).map(\.name), ["x-sum"])
    try peer.send(.headers(1), .data(1, "d"), .headers(1, [("grpc-status", "0")], end: true))
    XCTAssertEqual(
      handler.events,
      [.started, .writable, .head(200, [:]), .bytes("d"), .end(["grpc-status": ["0"]])]
    )
    XCTAssertEqual(try peer.sent(), [])
  }

  func testTrailersWithoutBody() throws {
    let peer = try HTTP2TestPeer()
    let stream = peer.start(RecordingHandler(), body: .streamed)
    XCTAssertEqual(try peer.sent().map(\.kind), [.headers])
    stream.finish(trailers: ["x-sum": ["42"]])
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.headers])
    XCTAssertEqual(frames.map(\.isEndStream), [true])
  }

  func testFinishWithoutBody() throws {
    let peer = try HTTP2TestPeer()
    let stream = peer.start(RecordingHandler(), body: .streamed)
    stream.finish(trailers: [:])
    XCTAssertEqual(try peer.sent().map(\.isEndStream), [false, true])
  }

  func testInformationalHeadsAreLeftOut() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1, [(":status", "100")]), .headers(1, [(":status", "103"), ("link", "x")]))
    XCTAssertEqual(handler.events, [.started])
    try peer.send(.headers(1, [(":status", "200"), ("a", "b")]), .headers(1, [("t", "u")], end: true))
    XCTAssertEqual(handler.events, [.started, .head(200, ["a": ["b"]]), .end(["t": ["u"]])])
  }

  func testCallsOfOneTickShareOneWrite() throws {
    let peer = try HTTP2TestPeer()
    _ = peer.startUnary(RecordingHandler())
    _ = peer.startUnary(RecordingHandler())
    peer.run()
    XCTAssertNotNil(try peer.channel.readOutbound(as: ByteBuffer.self))
    XCTAssertNil(try peer.channel.readOutbound(as: ByteBuffer.self))
  }

  func testCallStartedInAHandlerGoesOutWithTheSameRead() throws {
    let peer = try HTTP2TestPeer()
    let first = RecordingHandler()
    let second = RecordingHandler()
    first.onEvent = { event in
      guard case .end = event else { return }
      _ = peer.startUnary(second)
      XCTAssertEqual(second.events, [])
    }
    _ = peer.startUnary(first)
    _ = try peer.sent()
    try peer.channel.writeInbound(ByteBuffer(bytes: HTTP2Frame.headers(1, end: true).bytes))
    XCTAssertNotNil(try peer.channel.readOutbound(as: ByteBuffer.self))
    XCTAssertEqual(second.events, [.started])
  }

  /// RFC 9113 forbids them, and servers of gRPC send them: percent-encoding leaves a space as it is. They are no part of the
  /// value.
  func testSpacesAtTheEndsOfAValueAreRemoved() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(
      .headers(1, [(":status", "200"), ("name", " value ")]),
      .headers(1, [("grpc-status", "9"), ("grpc-message", "no such user: ")], end: true)
    )
    XCTAssertEqual(
      handler.events,
      [
        .started, .head(200, ["name": ["value"]]),
        .end(["grpc-status": ["9"], "grpc-message": ["no such user:"]]),
      ]
    )
  }

  func testByteByByte() throws {
    let frames: [HTTP2Frame] = [
      .headers(1, [(":status", "100")]), .headers(1, [(":status", "200"), ("name", "value")]), .ping(),
      .data(1, "first"), .settings(maxConcurrentStreams: 5), .headers(3, end: true), .data(1, "second"),
      .headers(1, [("grpc-status", "0"), ("grpc-message", String(repeating: "x", count: 300))], end: true),
      .reset(5, .refusedStream), .goAway(last: 7, .noError, debug: "bye"),
    ]
    func run(byteByByte: Bool) throws -> ([[RecordingHandler.Event]], [RecordingDelegate.Event], [HTTP2Frame])
    {
      let peer = try HTTP2TestPeer(settings: nil)
      peer.isByteByByte = byteByByte
      try peer.send(.settings(), .settingsAck)
      let handlers = (0..<4).map { _ in RecordingHandler() }
      for handler in handlers { _ = peer.startUnary(handler) }
      _ = try peer.sent()
      try peer.send(frames.flatMap(\.bytes))
      let sent = try peer.sent()
      peer.channel.pipeline.fireChannelInactive()
      return (handlers.map(\.joinedEvents), peer.delegate.events, sent)
    }
    let whole = try run(byteByByte: false)
    let bytes = try run(byteByByte: true)
    XCTAssertEqual(whole.0, bytes.0)
    // That the server goes away is told before all else that came in the same read.
    XCTAssertEqual(whole.1.dropFirst().first, .willClose)
    XCTAssertEqual(bytes.1.dropLast(2).last, .willClose)
    for events in [whole.1, bytes.1] {
      XCTAssertEqual(
        events.filter { $0 != .willClose && $0 != .canServe(5) },
        [.canServe(Int(Int32.max))] + Array(repeating: .closedStream, count: 4) + [.closed(.unavailable)]
      )
    }
    XCTAssertEqual(whole.2, bytes.2)
    XCTAssertEqual(whole.2.map(\.kind), [.ping, .settings])
    XCTAssertEqual(
      whole.0[0].dropLast(),
      [.started, .head(200, ["name": ["value"]]), .bytes("firstsecond")]
    )
    XCTAssertEqual(whole.0[1], [.started, .head(200, [:]), .end([:])])
    XCTAssertEqual(whole.0[2], [.started, .failed(.unavailable, isUnprocessed: true)])
    XCTAssertEqual(whole.0[3], [.started, .failed(.unavailable, isUnprocessed: false)])
  }
}
