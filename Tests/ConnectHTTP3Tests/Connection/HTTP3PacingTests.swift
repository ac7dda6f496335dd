internal import CQUICPeer
internal import Connect
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectHTTP3

/// That what is sent is spread over the round trip (RFC 9002, section 7.7), in virtual time, and the one timer behind it.
final class HTTP3PacingTests: XCTestCase {
  func testUploadIsSpreadOverRoundTrips() async throws {
    let roundTrip: UInt64 = 100_000_000
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get()) { $0.stream_window = 1 << 20 }
    peer.delay = .milliseconds(50)
    while peer.handshake == nil, peer.now < 50 * roundTrip { try peer.elapse(.milliseconds(10)) }
    XCTAssertNil(peer.handshakeError)
    try peer.elapse(.seconds(5))
    let log = WriteLog()
    try peer.channel.pipeline.syncOperations.addHandler(log, position: .first)
    peer.onRequest = { peer, stream in peer.respond(stream, body: "\(peer.requests[stream]?.body.count ?? 0)")
    }
    let handler = RecordingHandler()
    let start = peer.now
    peer.startUnary(handler, body: String(repeating: "x", count: 1_000_000))
    while !handler.isOver, peer.now < start + 100 * roundTrip { try peer.elapse(.milliseconds(10)) }
    XCTAssertEqual(handler.joinedEvents, [.started, .head(200, [:]), .bytes("1000000"), .end([:])])

    // Windows grow to several times what may go at once. Datagrams come in on whole milliseconds here, so what is written between
    // them is the timer's work.
    let bursts = log.bursts.filter { $0.count > 1500 }
    XCTAssertGreaterThan(bursts.count, 15)
    XCTAssertLessThanOrEqual(bursts.map(\.count).max() ?? 0, 65_536)
    XCTAssertGreaterThan(bursts.count { $0.time % 1_000_000 != 0 }, 5)
    for (burst, next) in zip(bursts, bursts.dropFirst()) {
      XCTAssertGreaterThan(next.time - burst.time, roundTrip / 50, "after \(burst)")
    }
  }

  /// What was written when.
  private final class WriteLog: ChannelOutboundHandler {
    typealias OutboundIn = AddressedEnvelope<ByteBuffer>
    /// Bytes by the time, in nanoseconds.
    private(set) var bursts: [(time: UInt64, count: Int)] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let (time, count) = (
        context.eventLoop.now.uptimeNanoseconds, self.unwrapOutboundIn(data).data.readableBytes
      )
      if let last = self.bursts.last, last.time == time {
        self.bursts[self.bursts.count - 1].count += count
      } else {
        self.bursts.append((time, count))
      }
      context.write(data, promise: promise)
    }
  }

  /// An earlier time replaces the one that is set; a later one waits until that has come.
  func testOneTimer() {
    let loop = EmbeddedEventLoop()
    var timer = HTTP3Timer()
    var fired: [String] = []
    timer.set(to: 10_000_000, on: loop) { fired.append("10 ms") }
    timer.set(to: nil, on: loop) { fired.append("never") }
    timer.set(to: 20_000_000, on: loop) { fired.append("20 ms") }
    timer.set(to: 5_000_000, on: loop) { fired.append("5 ms") }
    loop.advanceTime(by: .milliseconds(30))
    XCTAssertEqual(fired, ["5 ms"])
    timer.didFire()
    timer.set(to: 40_000_000, on: loop) { fired.append("40 ms") }
    loop.advanceTime(by: .milliseconds(30))
    XCTAssertEqual(fired, ["5 ms", "40 ms"])
    timer.didFire()
    timer.set(to: 70_000_000, on: loop) { fired.append("70 ms") }
    timer.cancel()
    loop.advanceTime(by: .milliseconds(30))
    XCTAssertEqual(fired, ["5 ms", "40 ms"])
  }
}
