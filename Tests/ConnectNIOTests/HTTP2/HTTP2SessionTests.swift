internal import Connect
internal import NIOCore
internal import XCTest

@testable internal import ConnectNIO

/// The session alone: bytes in, events and bytes out.
final class HTTP2SessionTests: XCTestCase {
  private func makeSession() -> HTTP2Session {
    HTTP2Session(configuration: .defaults, scheme: "http", authority: "demo.example")
  }

  private func submit(_ session: HTTP2Session, _ body: String = "") -> HTTP2Stream {
    let stream = HTTP2Stream(handler: RecordingHandler(), connection: nil)
    let body = HTTPStreamRequest.Body.complete(ByteBuffer(string: body))
    session.submit(.init(method: .post, target: "/", headers: [:], body: body), for: stream)
    return stream
  }

  private func drain(_ session: HTTP2Session, limit: Int = 1 << 20) -> [ByteBuffer] {
    XCTAssertTrue(session.fillOutput(limit: limit))
    let output = session.output.takeAll()
    return output.pieces + [output.last].filter { $0.readableBytes > 0 }
  }

  func testPrefaceComesFirst() {
    let session = self.makeSession()
    XCTAssertTrue(session.wantsWrite)
    let output = self.drain(session)
    XCTAssertEqual(output.count, 1)
    XCTAssertTrue(output[0].readableBytesView.starts(with: HTTP2FrameParser.preface))
    XCTAssertFalse(session.wantsWrite)
    XCTAssertEqual(self.drain(session), [])
  }

  func testReceivedBytesAreSlicesOfTheInput() throws {
    let session = self.makeSession()
    let stream = self.submit(session)
    _ = self.drain(session)
    let frames: [HTTP2Frame] = [.settings(), .headers(1), .data(1, Array(repeating: 9, count: 5000))]
    var input = ByteBuffer(bytes: [0, 0, 0] + frames.flatMap(\.bytes))
    input.moveReaderIndex(forwardBy: 3)
    XCTAssertTrue(session.receive(input))
    guard case .bytes(let owner, let bytes)? = session.events.last else { return XCTFail("no bytes") }
    XCTAssertTrue(owner === stream)
    XCTAssertEqual(bytes.readableBytes, 5000)
    let isShared = input.withVeryUnsafeBytes { whole in
      bytes.withUnsafeReadableBytes { part in
        guard let whole = whole.baseAddress, let part = part.baseAddress else { return false }
        return part >= whole && part < whole + input.writerIndex
      }
    }
    XCTAssertTrue(isShared)
  }

  func testLargePiecesAreNotCopiedInCleartext() throws {
    let session = self.makeSession()
    let body = ByteBuffer(repeating: 1, count: 40_000)
    let stream = HTTP2Stream(handler: RecordingHandler(), connection: nil)
    session.submit(.init(method: .post, target: "/", headers: [:], body: .complete(body)), for: stream)
    let output = self.drain(session)
    XCTAssertTrue(output.contains { $0.readableBytes == 16_384 })
    let start = body.withUnsafeReadableBytes { $0.baseAddress }
    let shared = output.contains { $0.withUnsafeReadableBytes { $0.baseAddress == start } }
    XCTAssertTrue(shared)
  }

  func testOutputStopsNearItsLimit() throws {
    let session = self.makeSession()
    XCTAssertTrue(session.receive(ByteBuffer(bytes: HTTP2Frame.settings([4: 1 << 20]).bytes)))
    XCTAssertTrue(session.receive(ByteBuffer(bytes: HTTP2Frame.windowUpdate(0, 1 << 20).bytes)))
    _ = self.submit(session, String(repeating: "x", count: 300_000))
    var count = 0
    var rounds = 0
    while session.wantsWrite {
      let size = self.drain(session, limit: 50_000).reduce(0) { $0 + $1.readableBytes }
      XCTAssertLessThan(size, 50_000 + 16_384 + 9)
      count += size
      rounds += 1
    }
    XCTAssertGreaterThan(count, 300_000)
    XCTAssertGreaterThan(rounds, 4)
  }

  func testManyFieldsOfManySizes() throws {
    let session = self.makeSession()
    var headers = Headers()
    for index in 0..<100 { headers.add(name: "x-\(index)", value: String(repeating: "ä", count: 3 * index)) }
    let stream = HTTP2Stream(handler: RecordingHandler(), connection: nil)
    let request = HTTPStreamRequest(
      method: .get,
      target: "/",
      headers: headers,
      body: .complete(ByteBuffer())
    )
    session.submit(request, for: stream)
    var parser = HTTP2FrameParser()
    for bytes in self.drain(session) { parser.append(bytes.readableBytesView) }
    var block: [UInt8] = []
    while let frame = parser.next() {
      if frame.kind == .headers || frame.kind == .continuation { block += frame.payload }
    }
    let fields = HTTP2FieldDecoder().decode(block)
    XCTAssertEqual(fields.prefix(3).map(\.value), ["GET", "http", "demo.example"])
    XCTAssertEqual(fields.dropFirst(4).map(\.name), headers.map(\.name))
    XCTAssertEqual(fields.dropFirst(4).map(\.value), headers.map(\.value))
  }

  func testInvalidSessionDoesNothing() {
    let session = self.makeSession()
    let live = self.submit(session, "body")
    session.invalidate()
    XCTAssertTrue(live.isClosed)
    XCTAssertEqual(session.streams.count, 0)
    XCTAssertFalse(session.receive(ByteBuffer(string: "x")))
    XCTAssertFalse(session.fillOutput(limit: 100))
    XCTAssertFalse(session.handle?.wantsRead == true || session.wantsWrite || session.takesRequests)
    session.reset(live, errorCode: .cancel)
    session.consume(10, of: live)
    session.requestBodyDidChange(live)
    session.events.removeAll()
    let late = self.submit(session)
    XCTAssertEqual(late.id, 0)
    guard case .failed(let stream, let failure)? = session.events.last else { return XCTFail("no failure") }
    XCTAssertTrue(stream === late)
    XCTAssertTrue(failure.isUnprocessed)
  }

  func testListOfLiveStreams() throws {
    let session = self.makeSession()
    let streams = (0..<4).map { _ in self.submit(session) }
    XCTAssertEqual(session.streams.all.map(\.id), [7, 5, 3, 1])
    _ = self.drain(session)
    func end(_ id: Int32) throws {
      XCTAssertTrue(session.receive(ByteBuffer(bytes: HTTP2Frame.reset(id, .cancel).bytes)))
    }
    XCTAssertTrue(session.receive(ByteBuffer(bytes: HTTP2Frame.settings().bytes)))
    try end(3)
    XCTAssertEqual(session.streams.all.map(\.id), [7, 5, 1])
    try end(7)
    XCTAssertEqual(session.streams.all.map(\.id), [5, 1])
    try end(1)
    try end(5)
    XCTAssertEqual(session.streams.all.count, 0)
    XCTAssertEqual(session.streams.count, 0)
    XCTAssertEqual(streams.map(\.isClosed), [true, true, true, true])
  }
}
