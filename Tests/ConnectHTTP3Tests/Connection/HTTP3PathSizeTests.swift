internal import Connect
internal import ConnectNIO
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectHTTP3

/// How large datagrams the path takes (RFC 9000, section 14), in virtual time.
final class HTTP3PathSizeTests: XCTestCase {
  private static let body = String(repeating: "0123456789", count: 20_000)

  /// Connects over a path that drops what is larger than `largest` bytes, and makes calls for some seconds.
  ///
  /// - Returns: The sizes of the datagrams that the client sent.
  private func sizes(
    largest: Int,
    known: Int? = nil,
    prepare: (HTTP3TestPeer) throws -> Void = { _ in }
  ) async throws -> [Int] {
    let peer = try HTTP3TestPeer(
      try await SharedCertificates.shared.get(),
      limits: HTTP3SessionLimits(datagramSize: known)
    )
    var sizes: [Int] = []
    peer.network = { direction, datagram in
      if direction == .toServer { sizes.append(datagram.count) }
      return datagram.count <= largest ? [datagram] : []
    }
    try prepare(peer)
    try peer.connect()
    peer.onRequest = { peer, stream in peer.respond(stream, body: peer.requests[stream]?.text ?? "") }
    for _ in 0..<10 {
      let handler = RecordingHandler()
      peer.startUnary(handler, body: Self.body)
      try peer.elapse(.seconds(2))
      XCTAssertEqual(
        handler.joinedEvents == [.started, .head(200, [:]), .bytes(Self.body), .end([:])],
        true,
        "\(largest): \(handler.events.count) events, \(handler.message)"
      )
    }
    return sizes
  }

  func testSizeThatGrows() async throws {
    let sizes = try await self.sizes(largest: 1452)
    XCTAssertEqual(sizes.first, 1200)
    XCTAssertEqual(sizes.max(), 1444)
    XCTAssertGreaterThan(sizes.count { $0 == 1444 }, 500)
  }

  /// Some sizes are tried three times each, and no datagram with bytes of a request is lost.
  func testSizesThatThePathDrops() async throws {
    for (largest, expected) in [(1200, 1200), (1250, 1232), (1350, 1342), (1420, 1406)] {
      let sizes = try await self.sizes(largest: largest)
      XCTAssertGreaterThan(sizes.count { $0 == expected }, 500, "\(largest)")
      let lost = sizes.count { $0 > largest }
      XCTAssertTrue((1...12).contains(lost), "\(largest): \(lost)")
    }
  }

  /// A size that the user knows is used after the handshake.
  func testKnownSize() async throws {
    let sizes = try await self.sizes(largest: 65_535, known: 8940)
    XCTAssertEqual(sizes.first, 1200)
    XCTAssertEqual(sizes.max(), 8940)
    XCTAssertGreaterThan(sizes.count { $0 == 8940 }, 200)
  }

  /// Where the user was wrong, the first calls take a little longer.
  func testKnownSizeThatThePathDrops() async throws {
    for known in [1500, 8940] {
      let sizes = try await self.sizes(largest: 1452, known: known)
      XCTAssertGreaterThan(sizes.count { $0 == 1200 }, 1000, "\(known)")
      let lost = sizes.count { $0 > 1452 }
      XCTAssertTrue((1...60).contains(lost), "\(known): \(lost)")
      let last = try XCTUnwrap(sizes.lastIndex { $0 > 1452 })
      XCTAssertLessThan(last, sizes.count / 2, "\(known)")
    }
  }

  /// Small datagrams that get through do not hide that large ones are lost.
  func testKnownSizeThatThePathDropsBesideSmallCalls() async throws {
    let peer = try HTTP3TestPeer(
      try await SharedCertificates.shared.get(),
      limits: HTTP3SessionLimits(datagramSize: 8940)
    )
    peer.network = { direction, datagram in
      direction == .toServer && datagram.count > 1452 ? [] : [datagram]
    }
    try peer.connect()
    peer.onRequest = { peer, stream in peer.respond(stream, body: peer.requests[stream]?.text ?? "") }
    let large = RecordingHandler()
    peer.startUnary(large, body: Self.body)
    for _ in 0..<200 {
      let small = RecordingHandler()
      peer.startUnary(small, body: "small")
      try peer.elapse(.milliseconds(10))
    }
    XCTAssertEqual(
      large.joinedEvents == [.started, .head(200, [:]), .bytes(Self.body), .end([:])],
      true,
      "\(large.events.count) events, \(large.message)"
    )
  }

  /// Without calls, a probe that is lost is no sign that the server is gone.
  func testProbesWithoutCalls() async throws {
    for largest in [1200, 1420] {
      let peer = try HTTP3TestPeer(
        try await SharedCertificates.shared.get(),
        keepalive: HTTP3Keepalive(unacknowledged: .seconds(1))
      )
      var lost = 0
      peer.network = { direction, datagram in
        guard datagram.count > largest else { return [datagram] }
        if direction == .toServer { lost += 1 }
        return []
      }
      try peer.connect()
      try peer.elapse(.seconds(20))
      XCTAssertEqual(peer.connection.state.phase, .active, "\(largest)")
      XCTAssertGreaterThan(lost, 0, "\(largest)")
    }
  }

  /// As on an interface with a smaller MTU: that a datagram is refused is no error of the connection.
  func testSizesThatTheSystemRefuses() async throws {
    let sizes = try await self.sizes(largest: 1452) { peer in
      try peer.channel.pipeline.syncOperations.addHandler(NarrowInterface(size: 1300), position: .first)
    }
    XCTAssertEqual(sizes.max(), 1232)
  }

  /// Refuses datagrams that are too large, as NIO tells of it.
  private final class NarrowInterface: ChannelOutboundHandler {
    typealias OutboundIn = AddressedEnvelope<ByteBuffer>
    private let size: Int

    init(size: Int) { self.size = size }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let envelope = self.unwrapOutboundIn(data)
      guard envelope.datagrams.contains(where: { $0.count > self.size }) else {
        context.write(data, promise: promise)
        return
      }
      promise?.fail(ChannelError.writeMessageTooLarge)
    }
  }

  /// Only a probe forbids fragments and has routers report them: such a report would close the channel.
  func testReportsOfRoutersAreIgnoredBetweenProbes() async throws {
    let watch = OptionWatch()
    _ = try await self.sizes(largest: 1350) { peer in
      try peer.channel.pipeline.syncOperations.addHandler(watch, position: .first)
    }
    let first = try XCTUnwrap(watch.sent.firstIndex { $0.size > 1200 })
    XCTAssertEqual(watch.sent[..<first].count { $0.option != nil }, 0)
    XCTAssertTrue(watch.sent[first...].allSatisfy { $0.option == 0 || $0.option == 3 })
    let probes = watch.sent.filter { $0.option == 3 }
    XCTAssertTrue((2...12).contains(probes.count), "\(probes)")
    XCTAssertTrue(probes.allSatisfy { $0.size > 1200 && $0.isAlone }, "\(probes)")
  }

  /// Writes down how IP_MTU_DISCOVER is set when something is sent.
  private final class OptionWatch: ChannelOutboundHandler {
    typealias OutboundIn = AddressedEnvelope<ByteBuffer>
    struct Sent {
      var size: Int
      var isAlone: Bool
      var option: ChannelOptions.Types.SocketOption.Value?
    }
    private(set) var sent: [Sent] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let datagrams = self.unwrapOutboundIn(data).datagrams
      let options = (context.channel as? EmbeddedChannel)?.options ?? []
      let option = options.lazy.compactMap { $0.value as? ChannelOptions.Types.SocketOption.Value }.last
      self.sent.append(
        Sent(size: datagrams.first?.count ?? 0, isAlone: datagrams.count == 1, option: option)
      )
      context.write(data, promise: promise)
    }
  }
}
