internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// Windows, demand, and a socket that takes nothing.
final class HTTP2FlowControlTests: XCTestCase {
  private func buffer(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 0x61, count: count) }

  func testLargeBodyArrivesWhole() throws {
    let peer = try HTTP2TestPeer(settings: .settings([4: 1 << 20]))
    try peer.send(.windowUpdate(0, 1 << 20))
    let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    _ = peer.start(RecordingHandler(), body: .complete(ByteBuffer(bytes: body)))
    let data = try peer.sent().filter { $0.kind == .data }
    XCTAssertEqual(data.flatMap(\.payload), body)
    XCTAssertEqual(data.filter(\.isEndStream).count, 1)
    XCTAssertEqual(data.last?.isEndStream, true)
  }

  func testManySmallWritesBecomeOneFrame() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    for index in 0..<1000 { stream.write(ByteBuffer(string: "\(index),")) }
    let data = try peer.sent().filter { $0.kind == .data }
    XCTAssertEqual(data.count, 1)
    XCTAssertEqual(data[0].payload, (0..<1000).flatMap { Array("\($0),".utf8) })
    XCTAssertEqual(handler.events, [.started, .writable])
  }

  func testWindowThatNeverOpensHoldsWrites() throws {
    let peer = try HTTP2TestPeer(settings: .settings(initialWindow: 10))
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(self.buffer(25))
    XCTAssertEqual(try peer.sent().filter { $0.kind == .data }.map(\.payload.count), [10])
    XCTAssertEqual(handler.events, [.started])
    try peer.send(.windowUpdate(1, 10))
    XCTAssertEqual(try peer.sent().map(\.payload.count), [10])
    XCTAssertEqual(handler.events, [.started])
    try peer.send(.windowUpdate(1, 10))
    XCTAssertEqual(try peer.sent().map(\.payload.count), [5])
    XCTAssertEqual(handler.events, [.started, .writable])
  }

  func testConnectionWindowHoldsAllStreams() throws {
    let peer = try HTTP2TestPeer(settings: .settings(initialWindow: 1 << 20))
    let handlers = [RecordingHandler(), RecordingHandler()]
    for handler in handlers { peer.start(handler, body: .streamed).write(self.buffer(60_000)) }
    let count = try peer.sent().filter { $0.kind == .data }.reduce(0) { $0 + $1.payload.count }
    XCTAssertEqual(count, 65_535)
    try peer.send(.windowUpdate(0, 1 << 20))
    let rest = try peer.sent().filter { $0.kind == .data }.reduce(0) { $0 + $1.payload.count }
    XCTAssertEqual(rest, 120_000 - 65_535)
    for handler in handlers { XCTAssertEqual(handler.events.last, .writable) }
  }

  func testEmptyWriteIsAnsweredToo() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer())
    XCTAssertEqual(handler.events, [])
    XCTAssertEqual(try peer.sent().map(\.kind), [.headers])
    XCTAssertEqual(handler.events, [.started, .writable])
  }

  func testWriterRunsOnFromItsOwnCallback() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    var count = 0
    handler.onEvent = { event in
      guard event == .writable else { return }
      count += 1
      if count < 10 {
        handler.stream?.write(ByteBuffer(string: "x"))
      } else {
        handler.stream?.finish(trailers: [:])
      }
    }
    stream.write(ByteBuffer(string: "x"))
    let frames = try peer.sent()
    XCTAssertEqual(frames.flatMap { $0.kind == .data ? $0.payload : [] }.count, 10)
    XCTAssertEqual(frames.last?.isEndStream, true)
  }

  func testHeldBytesAreBoundedByTheWindow() throws {
    let window = 100_000
    let peer = try HTTP2TestPeer(HTTP2Configuration(initialStreamWindow: window))
    let handler = RecordingHandler(isConsuming: false)
    let stream = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1))
    for _ in 0..<10 { try peer.send(.data(1, Array(repeating: 1, count: window / 10))) }
    XCTAssertEqual(handler.receivedBytes, window)
    XCTAssertEqual(try peer.sent(), [], "nothing is given back while nobody consumes")
    stream.consume(window)
    let updates = try peer.sent()
    XCTAssertEqual(updates.filter { $0.streamID == 1 }.map(\.number), [UInt32(window)])
    stream.consume(window)
    XCTAssertEqual(try peer.sent(), [], "bytes are given back once")
  }

  func testServerThatIgnoresTheWindowIsCutOff() throws {
    let peer = try HTTP2TestPeer(HTTP2Configuration(initialStreamWindow: 1000))
    let handler = RecordingHandler(isConsuming: false)
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1), .data(1, Array(repeating: 1, count: 1000)), .data(1, [1]))
    try peer.send(.data(1, [1]), .data(1, [1]))
    XCTAssertLessThanOrEqual(handler.receivedBytes, 1001, "the frame that breaks the rule is the last")
    XCTAssertEqual(handler.failure?.error.code, .internalError)
  }

  func testUnreadBytesHoldBackTheirStreamAlone() throws {
    let half = 8 << 20
    let peer = try HTTP2TestPeer(HTTP2Configuration(initialStreamWindow: 16 << 20))
    let handler = RecordingHandler(isConsuming: false)
    let stream = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1))
    for _ in 0..<half / 16_384 { try peer.send(.data(1, Array(repeating: 1, count: 16_384))) }
    let frames = try peer.sent()
    XCTAssertEqual(frames.map(\.kind), [.windowUpdate])
    XCTAssertEqual(frames.map(\.streamID), [0], "the connection has its window back, the stream has not")
    XCTAssertEqual(frames.map(\.number), [UInt32(half)])
    stream.cancel()
    XCTAssertEqual(try peer.sent().map(\.kind), [.reset], "bytes are given back once")
  }

  func testLateDataOfACancelledStreamIsGivenBack() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.startUnary(handler)
    _ = try peer.sent()
    try peer.send(.headers(1))
    stream.cancel()
    _ = try peer.sent()
    for _ in 0..<520 { try peer.send(.data(1, Array(repeating: 1, count: 16_384))) }
    XCTAssertEqual(try peer.sent().filter { $0.kind == .windowUpdate }.map(\.streamID), [0])
  }

  func testNoUpdateForAStreamThatTheServerHasEnded() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.start(handler, body: .streamed)
    _ = try peer.sent()
    let body = Array(repeating: UInt8(1), count: 16_384)
    let frames = (0..<40).map { HTTP2Frame.data(1, body, end: $0 == 39) }
    try peer.send(([HTTP2Frame.headers(1)] + frames).flatMap(\.bytes))
    XCTAssertEqual(try peer.sent().filter { $0.kind == .windowUpdate }, [])
  }

  func testUnwritableChannelHoldsEverything() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    _ = try peer.sent()
    peer.setWritable(false)
    stream.write(self.buffer(1000))
    let late = RecordingHandler()
    _ = peer.startUnary(late)
    XCTAssertEqual(try peer.sent(), [])
    XCTAssertEqual(handler.events, [.started])
    peer.setWritable(true)
    XCTAssertEqual(try peer.sent().map(\.kind), [.headers, .data, .data])
    XCTAssertEqual(handler.events, [.started, .writable])
  }

  func testWriterWaitsForTheChannelThatItsBytesHaveFilled() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    try peer.channel.pipeline.syncOperations.addHandler(FillingHandler(), position: .first)
    let stream = peer.start(handler, body: .streamed)
    stream.write(self.buffer(100))
    XCTAssertEqual(try peer.sent().map(\.kind), [.headers, .data])
    XCTAssertFalse(peer.channel.isWritable)
    XCTAssertEqual(handler.events, [.started])
    peer.setWritable(true)
    XCTAssertEqual(handler.events, [.started, .writable])
  }

  func testReadsAreHeldWhenAnswersPileUp() throws {
    let peer = try HTTP2TestPeer()
    let counter = ReadCounter()
    try peer.channel.pipeline.syncOperations.addHandler(counter, position: .first)
    peer.setWritable(false)
    for _ in 0...HTTP2Connection.heldAnswerLimit { try peer.send(.ping()) }
    let count = counter.reads
    peer.channel.pipeline.read()
    XCTAssertEqual(counter.reads, count)
    peer.setWritable(true)
    XCTAssertEqual(
      try peer.sent().filter { $0.kind == .ping && $0.isAck }.count,
      HTTP2Connection.heldAnswerLimit + 1
    )
    XCTAssertEqual(counter.reads, count + 1)
  }
}

/// Makes the channel unwritable as soon as something is written.
private final class FillingHandler: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    context.write(data, promise: promise)
    (context.channel as? EmbeddedChannel)?.isWritable = false
    context.fireChannelWritabilityChanged()
  }
}

private final class ReadCounter: ChannelOutboundHandler {
  typealias OutboundIn = Never
  var reads = 0

  func read(context: ChannelHandlerContext) {
    self.reads += 1
    context.read()
  }
}
