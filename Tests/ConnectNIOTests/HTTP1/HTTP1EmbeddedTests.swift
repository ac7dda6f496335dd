import Connect
import ConnectChannels
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOSSL
import XCTest

@testable import ConnectNIO

/// One HTTP/1.1 connection without a socket: byte by byte, and with the events that sockets rarely bring.
final class HTTP1EmbeddedTests: XCTestCase {
  // MARK: Reading

  func testResponseByteByByte() throws {
    let bytes =
      "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 \r\nA: 1\r\na: 2\r\n"
      + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: v\r\n\r\n"
    let world = try World()
    let call = world.start()
    for byte in bytes.utf8 { try world.receive([byte]) }
    XCTAssertEqual(
      call.events,
      ["started", "head 200 [a: 1, a: 2, transfer-encoding: chunked]", "abcd", "end [t: v]"]
    )
    XCTAssertEqual(world.delegate.events, ["canServe 1", "stream closed"])
  }

  func testCallStartedAtTheEndOfAnotherUsesTheSameConnection() throws {
    let world = try World()
    let call = world.start()
    var second: RecordedCall?
    call.onEnd = { second = world.start() }
    try world.receive("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    try world.receive("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")
    XCTAssertEqual(call.events.last, "end []")
    XCTAssertEqual(second?.events.last, "end []")
    XCTAssertEqual(second?.events[1], "head 201 [content-length: 0]")
    XCTAssertTrue(world.channel.isActive)
  }

  func testBytesBehindAResponseAreNoResponseToTheNextRequest() throws {
    let world = try World()
    let call = world.start()
    // The pool gives the connection to another call as soon as it hears that the stream has closed.
    var second: RecordedCall?
    world.delegate.onStreamClosed = {
      world.delegate.onStreamClosed = nil
      second = world.start()
    }
    try world.receive(
      "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"
    )
    XCTAssertEqual(call.events.last, "end []")
    XCTAssertFalse(world.channel.isActive)
    let outcome = second?.events.last ?? "none"
    XCTAssertTrue(outcome.hasPrefix("failed unavailable"), outcome)
  }

  private static let responses = [
    "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
    "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nt: v\r\n\r\n",
  ]

  /// However its bytes are cut, a response that ends where the bytes do leaves the connection usable.
  func testAResponseThatEndsWhereTheBytesDoKeepsTheConnection() throws {
    for response in Self.responses {
      for cut in 0...response.utf8.count {
        let world = try World()
        for _ in 0..<2 {
          let call = world.start()
          try world.receive(Array(response.utf8.prefix(cut)))
          try world.receive(Array(response.utf8.dropFirst(cut)))
          XCTAssertTrue(call.events.last?.hasPrefix("end") == true, "\(call.events)")
        }
        XCTAssertTrue(world.channel.isActive, "\(response) cut at \(cut)")
      }
    }
  }

  func testHalfAHeadBehindAResponseIsNoAnswerToTheNextRequest() throws {
    let evil = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"
    for response in Self.responses {
      for half in ["H", "HTTP/1.1 200 OK\r\ncontent-", "HTTP/1.1 200 OK\r\n", "body", "\n"] {
        let world = try World()
        let call = world.start()
        try world.receive(response + half)
        XCTAssertTrue(call.events.last?.hasPrefix("end") == true, "\(call.events)")
        XCTAssertFalse(world.channel.isActive, "\(response)\(half)")
        let second = world.start()
        try world.receive(String(evil.dropFirst(half.count)))
        XCTAssertEqual(second.events, ["failed unavailable unprocessed"])
      }
    }
  }

  func testHalfAHeadWhileIdleClosesTheConnection() throws {
    for half in ["H", "\r\n", "HTTP/1.1 200 OK\r\ncontent-"] {
      let world = try World()
      let call = world.start()
      try world.receive("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
      XCTAssertEqual(call.events.last, "end []")
      XCTAssertTrue(world.channel.isActive)
      try world.receive(half)
      XCTAssertFalse(world.channel.isActive, half)
      XCTAssertEqual(world.delegate.events, ["canServe 1", "stream closed", "will close", "closed"])
      XCTAssertEqual(world.start().events, ["failed unavailable unprocessed"])
    }
  }

  func testHalfAHeadBeforeTheRequestIsSentFailsTheCall() throws {
    let world = try World()
    let call = world.start(runs: false)
    try world.channel.writeInbound(ByteBuffer(string: "HTTP/1.1 200 OK\r\n"))
    XCTAssertEqual(call.events, ["failed internal unprocessed"])
    XCTAssertFalse(world.channel.isActive)
  }

  func testUnsolicitedBytesCloseAnIdleConnection() throws {
    let world = try World()
    try world.receive("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
    XCTAssertFalse(world.channel.isActive)
    XCTAssertEqual(world.delegate.events, ["canServe 1", "will close", "closed"])
  }

  func testSwitchingProtocolsIsAnError() throws {
    let world = try World()
    let call = world.start()
    try world.receive("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")
    XCTAssertTrue(call.events.last?.hasPrefix("failed internal") == true, "\(call.events)")
  }

  func testNotModifiedHasNoBody() throws {
    let world = try World()
    let call = world.start()
    try world.receive("HTTP/1.1 304 Not Modified\r\ncontent-length: 100\r\n\r\n")
    XCTAssertEqual(call.events, ["started", "head 304 [content-length: 100]", "end []"])
    XCTAssertTrue(world.channel.isActive)
  }

  // MARK: Losing the connection

  func testLostBeforeAnythingWasWrittenIsUnprocessed() throws {
    let world = try World()
    let call = world.start(runs: false)
    world.channel.pipeline.fireChannelInactive()
    world.channel.embeddedEventLoop.run()
    XCTAssertEqual(call.events, ["failed unavailable unprocessed"])
  }

  func testLostAfterwardsIsNot() throws {
    let world = try World()
    let call = world.start()
    world.channel.pipeline.fireChannelInactive()
    XCTAssertEqual(call.events, ["started", "failed unavailable"])
  }

  func testStartOnAClosedConnectionIsUnprocessed() throws {
    let world = try World()
    world.connection.drain()
    let call = world.start()
    XCTAssertEqual(call.events, ["failed unavailable unprocessed"])
    XCTAssertFalse(world.channel.isActive)
  }

  func testTLSThatEndsUncleanlyCutsOnlyBodiesWithoutLength() throws {
    for (head, end) in [("content-length: 2\r\n", "end []"), ("", "failed unavailable")] {
      let world = try World()
      let call = world.start()
      try world.receive("HTTP/1.1 200 OK\r\n\(head)\r\nok")
      world.channel.pipeline.fireErrorCaught(NIOSSLError.uncleanShutdown)
      world.channel.pipeline.fireChannelInactive()
      XCTAssertEqual(call.events.last, end)
    }
  }

  func testEndAndResetInOneGoKeepTheResponse() throws {
    let world = try World()
    let call = world.start()
    // Without channelReadComplete in between.
    world.channel.pipeline.fireChannelRead(ByteBuffer(string: "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
    XCTAssertEqual(call.events.count, 2)
    world.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
    XCTAssertEqual(call.events.last, "end []")
    XCTAssertFalse(world.channel.isActive)
  }

  // MARK: Back-pressure

  func testReadsAreWithheldAtTheWindow() throws {
    let world = try World(responseWindow: 10)
    let call = world.start()
    try world.receive("HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n123456789")
    world.reads = 0
    world.channel.read()
    XCTAssertEqual(world.reads, 1)
    try world.receive("0")
    world.reads = 0
    world.channel.read()
    XCTAssertEqual(world.reads, 0)
    call.stream?.consume(1)
    XCTAssertEqual(world.reads, 0, "not from within consume")
    world.channel.embeddedEventLoop.run()
    XCTAssertEqual(world.reads, 1)
    // Consuming more than was given changes nothing for the worse.
    call.stream?.consume(.max)
    try world.receive("1234567890")
    world.reads = 0
    world.channel.read()
    XCTAssertEqual(world.reads, 0)
  }

  func testReadingGoesOnWhenTheResponseIsComplete() throws {
    let world = try World(responseWindow: 2)
    let call = world.start()
    let answer = ByteBuffer(string: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    world.channel.pipeline.fireChannelRead(answer)
    world.reads = 0
    world.channel.read()
    XCTAssertEqual(world.reads, 0)
    world.channel.pipeline.fireChannelReadComplete()
    XCTAssertEqual(call.events.last, "end []")
    XCTAssertEqual(world.reads, 1)
    call.stream?.consume(2)
  }

  func testWritableComesAfterTheFlushAndWhenTheChannelIs() throws {
    let world = try World()
    let call = world.start(body: .streamed)
    call.stream?.write(ByteBuffer(string: "a"))
    XCTAssertEqual(call.events, ["started"])
    world.channel.embeddedEventLoop.run()
    XCTAssertEqual(call.events, ["started", "writable"])
    world.channel.isWritable = false
    call.stream?.write(ByteBuffer(string: "b"))
    world.channel.embeddedEventLoop.run()
    XCTAssertEqual(call.events, ["started", "writable"])
    world.channel.isWritable = true
    world.channel.pipeline.fireChannelWritabilityChanged()
    XCTAssertEqual(call.events, ["started", "writable", "writable"])
    call.stream?.finish(trailers: [:])
    world.channel.embeddedEventLoop.run()
    XCTAssertEqual(call.events.count, 3)
  }
}

// MARK: - Support

/// A connection in an embedded channel.
private final class World {
  let channel = EmbeddedChannel()
  let connection: HTTP1Connection
  let delegate = RecordedDelegate()
  private let counter = ReadCounter()

  var reads: Int {
    get { self.counter.count }
    set { self.counter.count = newValue }
  }

  init(responseWindow: Int = 1 << 20) throws {
    let configuration = NIOHTTPClient.Configuration.HTTP1(responseWindow: responseWindow)
    self.connection = HTTP1Connection(
      channel: self.channel,
      origin: Origin(scheme: .http, host: "a.example", port: 80),
      configuration: configuration,
      delegate: self.delegate,
      logger: Logger(label: "test")
    )
    try self.channel.connect(to: SocketAddress(unixDomainSocketPath: "/x")).wait()
    try self.channel.pipeline.syncOperations.addHandler(self.counter)
    try self.channel.pipeline.syncOperations.addHTTP1(self.connection, configuration: configuration)
  }

  func start(
    body: HTTPStreamRequest.Body = .complete(ByteBuffer(string: "x")),
    runs: Bool = true
  ) -> RecordedCall {
    let call = RecordedCall()
    call.isInsideCall = true
    call.stream = self.connection.startStream(
      HTTPStreamRequest(method: .post, target: "/", headers: [:], body: body),
      handler: call
    )
    call.isInsideCall = false
    if runs { self.channel.embeddedEventLoop.run() }
    return call
  }

  func receive(_ text: String) throws {
    try self.receive(Array(text.utf8))
  }

  func receive(_ bytes: [UInt8]) throws {
    try self.channel.writeInbound(ByteBuffer(bytes: bytes))
    self.channel.embeddedEventLoop.run()
  }
}

private final class ReadCounter: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  var count = 0

  func read(context: ChannelHandlerContext) {
    self.count += 1
    context.read()
  }
}

private final class RecordedCall: HTTPStreamHandler {
  var stream: (any HTTPStream)?
  var events: [String] = []
  var isInsideCall = false
  var onEnd: (() -> Void)?
  private var isInBody = false

  private func add(_ event: String) {
    XCTAssertFalse(self.isInsideCall)
    self.isInBody = false
    self.events.append(event)
  }

  func streamDidStart(on connection: HTTPConnectionInfo) { self.add("started") }
  func streamDidBecomeWritable() { self.add("writable") }

  func streamDidReceive(_ head: Connect.HTTPResponseHead) {
    self.add("head \(head.status) \(head.headers)")
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    if self.isInBody {
      self.events[self.events.count - 1] += String(buffer: bytes)
    } else {
      self.add(String(buffer: bytes))
      self.isInBody = true
    }
  }

  func streamDidEnd(trailers: Headers) {
    self.add("end \(trailers)")
    self.onEnd?()
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.add("failed \(failure.error.code)\(failure.isUnprocessed ? " unprocessed" : "")")
  }
}

private final class RecordedDelegate: StreamConnectionDelegate {
  var events: [String] = []
  var onStreamClosed: (() -> Void)?

  func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    self.events.append("canServe \(concurrentStreams)")
  }

  func connectionDidCloseStream(_ connection: any StreamConnection) {
    self.events.append("stream closed")
    self.onStreamClosed?()
  }

  func connectionWillClose(_ connection: any StreamConnection) {
    self.events.append("will close")
  }

  func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    self.events.append("closed")
  }
}
