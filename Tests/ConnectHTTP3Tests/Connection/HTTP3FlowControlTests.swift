internal import CQUICPeer
internal import Connect
internal import NIOCore
internal import XCTest

@testable internal import ConnectHTTP3

final class HTTP3FlowControlTests: XCTestCase {
  func testResponseThatNobodyTakesIsHeldBack() async throws {
    let window = 100_000
    let peer = try HTTP3TestPeer(
      try await SharedCertificates.shared.get(),
      limits: HTTP3SessionLimits(streamWindow: window)
    )
    try peer.connect()
    let handler = RecordingHandler(isConsuming: false)
    peer.startUnary(handler)
    try peer.run()
    peer.respond(0, body: String(repeating: "x", count: 500_000))
    try peer.elapse(.seconds(1))
    XCTAssertLessThanOrEqual(handler.receivedBytes, window)
    XCTAssertGreaterThan(handler.receivedBytes, window - 2000)
    // As much comes as is taken.
    var taken = 0
    while !handler.isOver, taken < 500_000 {
      let count = handler.receivedBytes - taken
      handler.stream?.consume(count)
      taken += count
      try peer.elapse(.milliseconds(50))
      XCTAssertLessThanOrEqual(handler.receivedBytes - taken, window)
    }
    XCTAssertEqual(handler.receivedBytes, 500_000)
    XCTAssertEqual(handler.events.last, .end([:]))
  }

  func testStreamThatNobodyReadsHoldsBackNoOther() async throws {
    let peer = try HTTP3TestPeer(
      try await SharedCertificates.shared.get(),
      limits: HTTP3SessionLimits(streamWindow: 100_000, connectionWindow: 150_000)
    )
    try peer.connect()
    peer.onRequest = { peer, stream in peer.respond(stream, body: String(repeating: "x", count: 300_000)) }
    let stuck = (0..<4).map { _ in RecordingHandler(isConsuming: false) }
    for handler in stuck { peer.startUnary(handler) }
    try peer.elapse(.seconds(1))
    let reading = RecordingHandler()
    peer.startUnary(reading)
    try peer.elapse(.seconds(1))
    XCTAssertEqual(reading.receivedBytes, 300_000)
    XCTAssertEqual(reading.events.last, .end([:]))
    for handler in stuck { XCTAssertLessThanOrEqual(handler.receivedBytes, 100_000) }
  }

  func testServerThatTakesNothingHoldsBackTheRequest() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get()) {
      $0.stream_window = 50_000
      $0.holds_windows = 1
    }
    try peer.connect()
    let handler = RecordingHandler()
    let stream = peer.start(handler, body: .streamed)
    stream.write(ByteBuffer(repeating: 1, count: 200_000))
    try peer.elapse(.seconds(1))
    XCTAssertEqual(handler.events, [.started])
    let received = try XCTUnwrap(peer.requests[0]?.body.count)
    XCTAssertLessThanOrEqual(received, 50_000)
    peer.extend(0, 500_000)
    try peer.elapse(.seconds(1))
    XCTAssertEqual(handler.events, [.started, .writable])
    XCTAssertEqual(peer.requests[0]?.body.count, 200_000)
  }

  func testConnectionWindowOfTheServer() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get()) {
      $0.connection_window = 30_000
      $0.holds_windows = 1
    }
    try peer.connect()
    let handlers = (0..<2).map { _ in RecordingHandler() }
    let streams = handlers.map { peer.start($0, body: .streamed) }
    for stream in streams {
      stream.write(ByteBuffer(repeating: 1, count: 40_000))
      stream.finish(trailers: [:])
    }
    try peer.elapse(.seconds(1))
    XCTAssertLessThanOrEqual(peer.requests.values.reduce(0) { $0 + $1.body.count }, 30_000)
    peer.extend(0, 200_000)
    try peer.elapse(.seconds(1))
    XCTAssertEqual(peer.requests.values.reduce(0) { $0 + $1.body.count }, 80_000)
    XCTAssertTrue(peer.requests.values.allSatisfy(\.isComplete))
  }

  func testRoomFollowsWhatTheServerAllows() async throws {
    let peer = try HTTP3TestPeer(try await SharedCertificates.shared.get()) {
      $0.streams = 2
      $0.holds_streams = 1
    }
    try peer.connect()
    peer.onRequest = { peer, stream in peer.respond(stream, body: "x") }
    XCTAssertEqual(peer.delegate.events, [.canServe(2)])
    let first = RecordingHandler()
    peer.startUnary(first)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(first.events.last, .end([:]))
    // The room is told before the stream's end, so that nobody is given what is not there.
    XCTAssertEqual(peer.delegate.events, [.canServe(2), .canServe(1), .closedStream])
    peer.startUnary(RecordingHandler())
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(Array(peer.delegate.events.suffix(2)), [.canServe(0), .closedStream])
    let third = RecordingHandler()
    peer.startUnary(third)
    try peer.run()
    XCTAssertEqual(third.events, [.failed(.unavailable, isUnprocessed: true)])
    peer.extendStreams(5)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(peer.delegate.events.last, .canServe(5))
    let fourth = RecordingHandler()
    peer.startUnary(fourth)
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(fourth.events.last, .end([:]))
  }
}
