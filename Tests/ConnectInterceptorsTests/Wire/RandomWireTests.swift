import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import TestSupport
import XCTest

/// Interceptors that delay, drop, split, merge and add chunks at random, over random streams of chunks.
///
/// What one passes on is what the next receives. Nothing hangs, both windows come out even, and there is one end.
final class RandomWireTests: XCTestCase {
  func testRandomExchanges() throws {
    let rounds = ProcessInfo.processInfo.environment["CONNECT_PROPERTY_ROUNDS"].flatMap(Int.init) ?? 1000
    let first = UInt64.random(in: 0...UInt64.max / 2)
    for seed in first..<first + UInt64(rounds) {
      try RandomWire(seed: seed).run()
      if (self.testRun?.failureCount ?? 0) > 0 { return XCTFail("seed \(seed)") }
    }
  }
}

/// What an interceptor has received and passed on, in one direction, in the order of its hooks.
private final class WireTrack: @unchecked Sendable {
  var received: [ByteBuffer] = []
  var sent: [Int: ByteBuffer] = [:]
  var kept = ByteBuffer()

  var allReceived: ByteBuffer { Self.joined(self.received) }
  var allSent: ByteBuffer { Self.joined(self.sent.sorted { $0.key < $1.key }.map(\.value)) }

  static func joined(_ buffers: [ByteBuffer]) -> ByteBuffer {
    buffers.reduce(into: ByteBuffer()) { $0.writeImmutableBuffer($1) }
  }
}

private final class RandomWire: @unchecked Sendable {
  private let seed: UInt64
  private var random: SeededGenerator
  private var tracks: [(request: WireTrack, response: WireTrack)] = []
  private var ends: [String] = []

  init(seed: UInt64) {
    self.seed = seed
    self.random = SeededGenerator(quietly: seed)
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self.random) < percent }

  private func bytes(_ maximum: Int) -> ByteBuffer {
    let count = Int.random(in: 1...maximum, using: &self.random)
    return ByteBuffer(bytes: (0..<count).map { _ in UInt8.random(in: 97...122, using: &self.random) })
  }

  /// Runs `work` now, or later.
  private func sometime(_ exchange: WireExchange, _ work: @escaping () -> Void) {
    guard self.chance(40) else { return work() }
    let delay = Duration.milliseconds(Int.random(in: 0...20, using: &self.random))
    let work = UncheckedBox(work)
    _ = exchange.executor.schedule(after: delay) { work.value() }
  }

  private func makeInterceptor(_ exchange: WireExchange) -> WireFunction {
    let tracks = (request: WireTrack(), response: WireTrack())
    self.tracks.append(tracks)
    let index = self.tracks.count - 1
    var function = WireFunction(endFunction: { outcome in self.ends.append("\(index) \(outcome.word)") })
    if self.chance(50) {
      function.requestHeadFunction = { head, proceed in self.sometime(exchange) { proceed(head) } }
    }
    if self.chance(50) {
      function.responseHeadFunction = { head, proceed in self.sometime(exchange) { proceed(head) } }
    }
    if self.chance(70) {
      function.requestChunkFunction = { self.take($0, $1, tracks.request, exchange) }
      function.requestEndFunction = { self.finish($0, $1, tracks.request, exchange) }
    }
    if self.chance(70) {
      function.responseChunkFunction = { self.take($0, $1, tracks.response, exchange) }
      function.responseEndFunction = { self.finish($0, $1, tracks.response, exchange) }
    }
    return function
  }

  private func take(
    _ bytes: ByteBuffer,
    _ proceed: Proceed<WireChunkVerb>,
    _ track: WireTrack,
    _ exchange: WireExchange
  ) {
    track.received.append(bytes)
    let number = track.received.count
    let chunks: [ByteBuffer]
    switch Int.random(in: 0..<6, using: &self.random) {
    case 0: chunks = []
    case 1:
      track.kept.writeImmutableBuffer(bytes)
      chunks = []
    case 2:
      var rest = bytes
      let half = rest.readSlice(length: rest.readableBytes / 2) ?? ByteBuffer()
      chunks = [half, rest]
    case 3:
      chunks = [track.kept, bytes]
      track.kept = ByteBuffer()
    case 4: chunks = [bytes, self.bytes(300)]
    default: chunks = [bytes]
    }
    track.sent[number] = WireTrack.joined(chunks)
    self.sometime(exchange) {
      proceed.send(chunks)
      proceed.drop()
    }
  }

  private func finish(
    _ trailers: Headers,
    _ proceed: Proceed<WireEndVerb>,
    _ track: WireTrack,
    _ exchange: WireExchange
  ) {
    let chunks = [track.kept]
    track.sent[.max] = track.kept
    self.sometime(exchange) { proceed(trailers, after: chunks) }
  }

  func run() throws {
    let count = Int.random(in: 1...4, using: &self.random)
    let limits = WireLimits(
      waitingBytes: Int.random(in: 1...2000, using: &self.random),
      waitingChunks: Int.random(in: 1...5, using: &self.random)
    )
    let scene = WireScene(Array(repeating: { self.makeInterceptor($0) }, count: count), limits: limits)
    let executor = scene.executor
    let request = (0..<Int.random(in: 0...15, using: &self.random)).map { _ in self.bytes(400) }
    let response = (0..<Int.random(in: 0...30, using: &self.random)).map { _ in self.bytes(400) }

    // The call writes a chunk when it is told that it may, and consumes at random times.
    var unwritten = request[...]
    func writeNext() {
      if let next = unwritten.popFirst() {
        scene.caller.write(next)
      } else {
        scene.caller.inside { scene.caller.stream?.finish(trailers: ["t": ["1"]]) }
      }
    }
    scene.caller.onWritable = { writeNext() }
    var unconsumed = 0
    scene.caller.onChunk = { size in
      unconsumed += size
      if self.chance(50) {
        let count = Int.random(in: 0...unconsumed, using: &self.random)
        unconsumed -= count
        scene.caller.inside { scene.caller.stream?.consume(count) }
      }
    }
    // The transport says now and then that all is sent.
    scene.peer.onStart = { stream in
      var isScheduled = false
      stream.onWrite = { _ in
        guard !isScheduled else { return }
        isScheduled = true
        let delay = Duration.milliseconds(Int.random(in: 0...5, using: &self.random))
        let tell = UncheckedBox {
          isScheduled = false
          if !stream.isFinished { stream.handler?.streamDidBecomeWritable() }
        }
        _ = executor.schedule(after: delay) { tell.value() }
      }
    }
    try scene.start()
    scene.run { writeNext() }
    executor.advance(by: .seconds(60))
    let what = "seed \(self.seed)"
    guard let stream = scene.stream else { return XCTFail("\(what): not started") }
    XCTAssertEqual(stream.events.last, "finish t=1", "\(what): the request hangs")

    // The server sends as the window allows.
    let window = Int.random(in: 400...3000, using: &self.random)
    scene.respond(201)
    for bytes in response {
      var rounds = 0
      while stream.deliveredBytes - stream.consumedBytes + bytes.readableBytes > window, rounds < 100 {
        rounds += 1
        scene.run {
          let count = unconsumed
          unconsumed = 0
          scene.caller.inside { scene.caller.stream?.consume(count) }
        }
        executor.advance(by: .milliseconds(25))
      }
      guard rounds < 100 else { return XCTFail("\(what): the response hangs") }
      scene.run {
        stream.deliveredBytes += bytes.readableBytes
        stream.handler?.streamDidReceive(bytes)
      }
    }
    for _ in 0..<300 where stream.consumedBytes != stream.deliveredBytes {
      executor.advance(by: .seconds(1))
      scene.run {
        let count = unconsumed
        unconsumed = 0
        scene.caller.inside { scene.caller.stream?.consume(count) }
      }
    }
    XCTAssertEqual(stream.consumedBytes, stream.deliveredBytes, "\(what): the window")
    scene.end(["t": ["2"]])
    for _ in 0..<300 where !scene.caller.isOver {
      executor.advance(by: .seconds(1))
      scene.run {
        let count = unconsumed
        unconsumed = 0
        scene.caller.inside { scene.caller.stream?.consume(count) }
      }
    }
    XCTAssertEqual(scene.caller.events.last, "end t=2", what)
    XCTAssertEqual(
      self.ends,
      (0..<count).reversed().map { "\($0) completed" },
      what
    )

    var bytes = WireTrack.joined(request)
    for (track, _) in self.tracks where !track.received.isEmpty || !track.sent.isEmpty {
      XCTAssertEqual(track.allReceived, bytes, "\(what): the request's order")
      bytes = track.allSent
    }
    XCTAssertEqual(stream.body, bytes, "\(what): the request's body")
    bytes = WireTrack.joined(response)
    for (_, track) in self.tracks.reversed() where !track.received.isEmpty || !track.sent.isEmpty {
      XCTAssertEqual(track.allReceived, bytes, "\(what): the response's order")
      bytes = track.allSent
    }
    XCTAssertEqual(scene.caller.body, bytes, "\(what): the response's body")
  }
}
