import Connect
import NIOCore
import NIOEmbedded
import XCTest

@testable import ConnectNIO

/// A peer that breaks the protocol: the call whose response is broken gets `internal`, and the other calls of the
/// connection get `unavailable`, which retries take.
final class HTTP2BlameTests: XCTestCase {
  private struct Break {
    let what: String
    let frames: [HTTP2Frame]
    /// The codes of the calls on streams 1, 3 and 5.
    let codes: [Code]
  }

  private static func number(_ number: UInt32) -> [UInt8] { HTTP2Frame.bytes(number) }

  func testWhoIsToBlame() throws {
    let head = HTTP2Frame.headers(3)
    let breaks: [Break] = [
      Break(
        what: "header block that does not decode",
        frames: [HTTP2Frame(kind: .headers, flags: 4, streamID: 3, payload: [0xff, 0xff, 0xff, 0xff])],
        codes: [.unavailable, .internalError, .unavailable]
      ),
      Break(
        what: "window that overflows",
        frames: [head, HTTP2Frame(kind: .windowUpdate, streamID: 0, payload: Self.number(0x7fff_ffff))],
        codes: [.unavailable, .unavailable, .unavailable]
      ),
      Break(
        what: "promise that was forbidden",
        frames: [
          HTTP2Frame(
            kind: .pushPromise,
            flags: 4,
            streamID: 3,
            payload: Self.number(2) + HTTP2Frame.fieldBlock([(":method", "GET"), (":path", "/")])
          )
        ],
        codes: [.unavailable, .internalError, .unavailable]
      ),
      Break(
        what: "DATA of the connection",
        frames: [.data(0, "x")],
        codes: [.unavailable, .unavailable, .unavailable]
      ),
      Break(
        what: "SETTINGS of a wrong size",
        frames: [HTTP2Frame(kind: .settings, payload: [1, 2, 3])],
        codes: [.unavailable, .unavailable, .unavailable]
      ),
      Break(
        what: "another frame in a header block",
        frames: [
          HTTP2Frame(
            kind: .headers,
            flags: 0,
            streamID: 3,
            payload: HTTP2Frame.fieldBlock([(":status", "200")])
          ), .ping(),
        ],
        codes: [.unavailable, .internalError, .unavailable]
      ),
    ]
    for example in breaks {
      let peer = try HTTP2TestPeer()
      let handlers = (0..<3).map { _ in RecordingHandler() }
      for handler in handlers { _ = peer.startUnary(handler) }
      _ = try peer.sent()
      try? peer.send(example.frames.flatMap(\.bytes))
      peer.run()
      XCTAssertEqual(handlers.map { $0.failure?.error.code }, example.codes, example.what)
      for handler in handlers {
        let error = handler.failure?.error
        guard error?.code == .unavailable else { continue }
        let cause = error?.exception as? ConnectError
        XCTAssertEqual(cause?.code, .internalError, example.what)
        XCTAssertTrue(
          error?.message?.hasPrefix(cause?.message ?? "?") == true,
          "\(example.what): \(error?.message ?? "")"
        )
        XCTAssertEqual(handler.failure?.isUnprocessed, false, example.what)
      }
      XCTAssertEqual(peer.delegate.events.last, .closed(.internalError), example.what)
    }
  }

  /// The only other call was answered: the one that is left has nothing to do with it.
  func testDataBehindTheEndOfAnotherResponse() throws {
    let peer = try HTTP2TestPeer()
    let handlers = [RecordingHandler(), RecordingHandler()]
    for handler in handlers { _ = peer.startUnary(handler) }
    _ = try peer.sent()
    try peer.send(.headers(1, end: true))
    try? peer.send(.data(1, "more"))
    peer.run()
    XCTAssertEqual(handlers[0].events.last, .end([:]))
    guard let failure = handlers[1].failure else {
      // libnghttp2 may know nothing of the stream any more, and ignore the frame.
      return XCTAssertTrue(peer.channel.isActive)
    }
    XCTAssertEqual(failure.error.code, .unavailable)
  }

  /// A call that is alone meets the same peer again.
  func testACallThatIsAlone() throws {
    let peer = try HTTP2TestPeer()
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    _ = try peer.sent()
    try? peer.send(.data(0, "x"))
    peer.run()
    XCTAssertEqual(handler.failure?.error.code, .internalError)
  }

  func testARequestThatHasNotLeft() throws {
    let peer = try HTTP2TestPeer()
    peer.setWritable(false)
    let handler = RecordingHandler()
    _ = peer.startUnary(handler)
    peer.run()
    try? peer.send(.data(0, "x"))
    peer.run()
    XCTAssertEqual(handler.failure?.error.code, .unavailable)
    XCTAssertEqual(handler.failure?.isUnprocessed, true)
  }

  func testAStreamThatIsBrokenAloneFailsAlone() throws {
    let peer = try HTTP2TestPeer()
    let handlers = [RecordingHandler(), RecordingHandler()]
    for handler in handlers { _ = peer.startUnary(handler) }
    _ = try peer.sent()
    try peer.send(.headers(1, [(":status", "200"), ("connection", "close")]))
    try peer.send(.headers(3), .data(3, "fine", end: true))
    XCTAssertEqual(handlers[0].failure?.error.code, .internalError)
    XCTAssertEqual(handlers[1].events.last, .end([:]))
  }

  // MARK: Values, and what never ends

  func testWhiteSpaceAroundValues() throws {
    let peer = try HTTP2TestPeer()
    for isRepeated in [false, true] {
      let handler = RecordingHandler()
      let stream: Int32 = isRepeated ? 3 : 1
      _ = peer.startUnary(handler)
      _ = try peer.sent()
      try peer.send(
        .headers(stream, [(":status", "200"), ("a", " b\t"), ("c", "d  e "), ("f", " "), ("g", "")]),
        .headers(stream, [("grpc-status", "5 "), ("h-bin", "\tAAEC , AA ")], end: true)
      )
      XCTAssertEqual(
        handler.events.dropFirst(),
        [
          .head(200, ["a": ["b"], "c": ["d  e"], "f": [""], "g": [""]]),
          .end(["grpc-status": ["5"], "h-bin": ["AAEC , AA"]]),
        ]
      )
    }
  }

  func testEndlessInformationalResponses() throws {
    let peer = try HTTP2TestPeer()
    let handlers = [RecordingHandler(), RecordingHandler()]
    for handler in handlers { _ = peer.startUnary(handler) }
    _ = try peer.sent()
    for _ in 0..<100 { try peer.send(.headers(1, [(":status", "103")]), .headers(3, [(":status", "100")])) }
    XCTAssertEqual(handlers.map(\.events), [[.started], [.started]])
    try peer.send(.headers(3), .data(3, "fine", end: true))
    XCTAssertEqual(handlers[1].events.last, .end([:]))
    for _ in 0..<50 { try peer.send(.headers(1, [(":status", "103")])) }
    XCTAssertEqual(handlers[0].failure?.error.code, .internalError)
    XCTAssertTrue(handlers[0].failure?.error.message?.contains("more than 100 informational") == true)
    XCTAssertEqual(try peer.sent().filter { $0.kind == .reset }.map(\.streamID), [1])
    XCTAssertTrue(peer.channel.isActive)
  }

  func testDebugDataWithControlCharacters() throws {
    let peer = try HTTP2TestPeer()
    try peer.send(.goAway(last: 0, .internalError, debug: "a\u{0}b\r\n\u{1b}[31m"))
    let message = peer.delegate.error?.message ?? ""
    XCTAssertTrue(message.hasSuffix("INTERNAL_ERROR: a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}[31m"), message)
  }
}
