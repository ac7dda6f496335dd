import ConnectTesting
import NIOCore
import XCTest

@testable import Connect

final class BodyBuffersTests: XCTestCase {
  private let executor = VirtualExecutor()
  private let buffers = BodyBuffers()

  private func address(_ buffer: ByteBuffer) -> UnsafeRawPointer? {
    buffer.withVeryUnsafeBytes { $0.baseAddress }
  }

  /// Takes a buffer, and says where its memory is.
  private func take(size: Int) -> (ByteBuffer, UnsafeRawPointer?) {
    let buffer = self.buffers.take(size: size)
    return (buffer, self.address(buffer))
  }

  /// Has buffers with room for `size` bytes wait in the pool.
  private func fill(_ count: Int, size: Int) {
    var taken = (0..<count).map { _ in self.buffers.take(size: size) }
    while let buffer = taken.popLast() { self.buffers.put(consume buffer, on: self.executor) }
  }

  func testMemoryIsUsedAgain() {
    var (buffer, first) = self.take(size: 65_536)
    XCTAssertGreaterThanOrEqual(buffer.writableBytes, 65_536)
    buffer.writeRepeatingByte(7, count: 65_536)
    self.buffers.put(consume buffer, on: self.executor)
    XCTAssertEqual(self.buffers.freeBytes, 65_536)
    let (again, second) = self.take(size: 20_000)
    XCTAssertEqual(again.readableBytes, 0)
    XCTAssertEqual(first, second)
    XCTAssertEqual(self.buffers.freeBytes, 0)
  }

  func testMemoryThatIsHeldIsLeftAlone() {
    var (buffer, _) = self.take(size: 65_536)
    buffer.writeString("held")
    let holder = buffer
    self.buffers.put(buffer, on: self.executor)
    XCTAssertEqual(self.buffers.freeBytes, 0)
    XCTAssertEqual(String(buffer: holder), "held")
    XCTAssertEqual(self.executor.scheduled, [])
  }

  func testOnlyAsManyComeBackAsWereTaken() {
    self.buffers.put(ByteBuffer(repeating: 1, count: 65_536), on: self.executor)
    XCTAssertEqual(self.buffers.freeBytes, 0)
  }

  func testASmallMessageTakesNoLargeBuffer() {
    self.fill(1, size: 1 << 20)
    XCTAssertLessThan(self.buffers.take(size: 10_000).storageCapacity, 1 << 20)
    XCTAssertEqual(self.buffers.freeBytes, 1 << 20)
  }

  func testBound() {
    self.fill(100, size: 65_536)
    XCTAssertEqual(self.buffers.freeBytes, BodyBuffers.maximumBytes)
    self.fill(100, size: 65_536)
    XCTAssertEqual(self.buffers.freeBytes, BodyBuffers.maximumBytes)
  }

  func testALargerBufferThanTheBoundIsFreed() {
    self.fill(1, size: BodyBuffers.maximumBytes + 1)
    XCTAssertEqual(self.buffers.freeBytes, 0)
  }

  func testWhatIsNotNeededIsFreed() {
    self.fill(8, size: 65_536)
    XCTAssertEqual(self.executor.scheduled, [BodyBuffers.period])
    // Only the first has waited for a whole period.
    self.executor.advance(by: BodyBuffers.period)
    XCTAssertEqual(self.buffers.freeBytes, 7 * 65_536)
    self.fill(3, size: 65_536)
    self.executor.advance(by: BodyBuffers.period)
    XCTAssertEqual(self.buffers.freeBytes, 3 * 65_536)
    self.executor.advance(by: BodyBuffers.period)
    XCTAssertEqual(self.buffers.freeBytes, 0)
    // No timer stays without buffers.
    XCTAssertEqual(self.executor.scheduled, [])
  }

  // MARK: Responses

  private static let cases: [(any WireProtocol, StreamType)] = [
    (ConnectProtocol(), .unary), (ConnectProtocol(), .serverStream), (GRPCProtocol(), .unary),
    (GRPCWebProtocol(isText: false), .serverStream),
  ]
  private static let size = 100_000

  /// The decoders of a client.
  private func decoders(_ wire: any WireProtocol) -> DecoderMaker {
    DecoderMaker(wire: wire, acceptedEncodings: .none, maximumMessageSize: 1 << 20, buffers: self.buffers)
  }

  /// A response whose message came in two chunks, and its message.
  private func receive(
    _ byte: UInt8,
    _ decoders: DecoderMaker,
    _ streamType: StreamType
  ) throws -> (ResponseReader, ByteBuffer) {
    let isEnveloped = decoders.wire.envelopesMessages(of: streamType)
    let contentType = decoders.wire.contentType(codecName: "proto", isUnary: streamType == .unary)
    let reader = decoders.makeDecoder(
      contentType: contentType,
      streamType: streamType,
      maximumMessageSize: .max,
      maximumMetadataSize: 1024
    )
    reader.receive(HTTPResponseHead(status: 200, headers: ["content-type": [contentType]]))
    var body = ByteBuffer(repeating: byte, count: Self.size)
    if isEnveloped { body = Envelope.encode(body) }
    reader.receive(try XCTUnwrap(body.readSlice(length: Self.size / 2)))
    reader.receive(body)
    if !isEnveloped { reader.receiveEnd(trailers: Headers()) }
    let method = MethodInfo(path: "/a.B/C", streamType: streamType)
    var result = isEnveloped ? nil : try reader.takeSingle(from: nil, of: method)?.result.get()
    while result?.isMessage != true { result = try XCTUnwrap(reader.next(from: nil)) }
    guard case .bytes(let message)? = result else {
      throw ConnectError(code: .unknown, message: "no message")
    }
    return (reader, message)
  }

  private func assert(_ message: ByteBuffer, isFullOf byte: UInt8, _ text: String) {
    XCTAssertEqual(message.readableBytes, Self.size, text)
    XCTAssertTrue(message.readableBytesView.allSatisfy { $0 == byte }, text)
  }

  func testAResponseUsesTheMemoryOfTheLastOne() throws {
    for (wire, streamType) in Self.cases {
      let name = "\(wire.name), \(streamType)"
      let decoders = self.decoders(wire)
      var (reader, message) = try self.receive(1, decoders, streamType)
      let first = self.address(message)
      message = ByteBuffer()
      reader.lent.giveBack(to: self.buffers, on: self.executor)
      XCTAssertGreaterThanOrEqual(self.buffers.freeBytes, Self.size, name)
      (reader, message) = try self.receive(2, decoders, streamType)
      XCTAssertEqual(self.address(message), first, name)
      self.assert(message, isFullOf: 2, name)
      message = ByteBuffer()
      reader.lent.giveBack(to: self.buffers, on: self.executor)
    }
  }

  func testAMessageThatSomebodyHoldsIsNotChanged() throws {
    for (wire, streamType) in Self.cases {
      let name = "\(wire.name), \(streamType)"
      let decoders = self.decoders(wire)
      let (reader, held) = try self.receive(1, decoders, streamType)
      reader.lent.giveBack(to: self.buffers, on: self.executor)
      XCTAssertEqual(self.buffers.freeBytes, 0, name)
      let (_, message) = try self.receive(2, decoders, streamType)
      self.assert(held, isFullOf: 1, name)
      self.assert(message, isFullOf: 2, name)
    }
  }
}
