internal import Connect
internal import ConnectNIO
internal import NIOCore
internal import TestSupport
internal import XCTest

@testable internal import ConnectHTTP3

/// Many streamed requests in turns, whose parts and ends come at any time.
final class HTTP3ManyStreamsTests: XCTestCase {
  /// A request in the making.
  private final class Request {
    let handler = RecordingHandler()
    var stream: (any HTTPStream)?
    var written = ""
    var partsLeft: Int

    init(parts: Int) { self.partsLeft = parts }
  }

  private func run(
    _ what: String,
    count: Int,
    _ random: inout SeededGenerator,
    loses: (inout SeededGenerator) -> Bool = { _ in false }
  ) async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    peer.onRequest = { peer, stream in
      peer.respond(
        stream,
        body: "\(peer.requests[stream]?.body.count ?? -1)",
        trailers: [("grpc-status", "0")]
      )
    }
    var open: [Request] = []
    var all: [Request] = []
    while all.count < count || !open.isEmpty {
      // As the pool does: no more than the server has room for, which what is lost holds back.
      let hasRoom = open.count < 60 && peer.connection.session.streamRoom > 0
      if all.count < count, hasRoom, Bool.random(using: &random) {
        let request = Request(parts: Int.random(in: 0...4, using: &random))
        request.stream = peer.start(request.handler, body: .streamed)
        open.append(request)
        all.append(request)
      }
      for _ in 0..<Int.random(in: 0...5, using: &random) {
        guard let index = open.indices.randomElement(using: &random) else { break }
        let request = open[index]
        if request.partsLeft > 0 {
          request.partsLeft -= 1
          let large = Int.random(in: 0..<10, using: &random) == 0
          let part = String(repeating: "x", count: large ? 3000 : Int.random(in: 1...30, using: &random))
          request.written += part
          request.stream?.write(ByteBuffer(string: part))
        } else {
          request.stream?.finish(trailers: Bool.random(using: &random) ? [:] : ["t": ["1"]])
          open.remove(at: index)
        }
      }
      let steps = Int.random(in: 0...2, using: &random)
      let isLossy = loses(&random)
      peer.network = { isLossy ? [] : [$1] }
      if steps > 0 { try peer.elapse(.microseconds(300 * Int64(steps))) }
    }
    peer.network = { [$1] }
    try peer.elapse(.seconds(3))
    XCTAssertEqual(
      peer.connection.state.phase,
      .active,
      "\(what): \(peer.delegate.events), \(peer.serverError)"
    )
    for (index, request) in all.enumerated() {
      XCTAssertEqual(request.handler.events.last, .end(["grpc-status": ["0"]]), "\(what), \(index)")
      XCTAssertEqual(
        request.handler.joinedEvents.filter { if case .bytes = $0 { true } else { false } },
        [.bytes("\(request.written.utf8.count)")],
        "\(what), \(index)"
      )
    }
    XCTAssertTrue(peer.connection.session.http.streams.isEmpty, what)
    XCTAssertEqual(peer.delegate.closedStreams, count, what)
  }

  /// The end of a request waits for the congestion window while all that was sent before it is acknowledged.
  func testEndThatWaitsIsNotForgotten() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get())
    try peer.connect()
    peer.onRequest = { peer, stream in peer.respond(stream, body: "x") }
    var held: [[UInt8]] = []
    peer.network = { direction, datagram in
      guard direction == .toClient else { return [datagram] }
      held.append(datagram)
      return []
    }
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(string: "some"))
    try peer.run()
    // What is acknowledged so far waits; then the window fills up, and all is lost.
    let acknowledgement = held
    peer.network = { _, _ in [] }
    let large = RecordingHandler()
    let other = peer.start(large, body: .streamed)
    other.write(ByteBuffer(repeating: 1, count: 200_000))
    try peer.run()
    stream.finish(trailers: [:])
    try peer.run()
    for datagram in acknowledgement { peer.injectAtClient(datagram) }
    try peer.run()
    peer.network = { [$1] }
    other.finish(trailers: [:])
    try peer.elapse(.seconds(10))
    XCTAssertEqual(handler.events.last, .end([:]))
    XCTAssertEqual(large.events.last, .end([:]))
  }

  func testAllRequestsEnd() async throws {
    var random = SeededGenerator()
    for _ in 0..<5 { try await self.run("no loss", count: 300, &random) }
  }

  func testAllRequestsEndInSpiteOfLoss() async throws {
    var random = SeededGenerator()
    for _ in 0..<5 {
      try await self.run("loss", count: 200, &random) { Int.random(in: 0..<10, using: &$0) == 0 }
    }
  }
}
