internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore
internal import NIOEmbedded
internal import XCTest

@testable internal import ConnectNIO

/// A connection under test on an embedded channel, and the server's end of it, played by hand.
final class HTTP2TestPeer {
  let channel: EmbeddedChannel
  let connection: HTTP2Connection
  let delegate = RecordingDelegate()
  let pace: NIOLoopBoundBox<Int>
  let decoder = HTTP2FieldDecoder()
  private var parser = HTTP2FrameParser()
  /// Feeds the client one byte at a time.
  var isByteByByte = false

  /// - Parameter settings: The server's first frame; nil to leave that to the test.
  init(
    _ configuration: HTTP2Configuration = .defaults,
    settings: HTTP2Frame? = .settings(maxConcurrentStreams: 100)
  ) throws {
    self.channel = EmbeddedChannel()
    self.pace = .makeBoxSendingValue(1, eventLoop: self.channel.eventLoop)
    self.connection = HTTP2Connection(
      channel: self.channel,
      scheme: "http",
      authority: "demo.example:8080",
      configuration: configuration,
      keepalivePace: self.pace,
      delegate: self.delegate,
      logger: Logger(label: "test")
    )
    try self.channel.pipeline.syncOperations.addHandler(self.connection)
    try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 8080)).wait()
    self.run()
    if let settings {
      try self.send(settings, .settingsAck)
      _ = try self.sent()
    }
  }

  deinit {
    self.channel.close(promise: nil)
    self.channel.embeddedEventLoop.run()
  }

  func run() { self.channel.embeddedEventLoop.run() }

  func send(_ frames: HTTP2Frame...) throws { try self.send(frames.flatMap(\.bytes)) }

  func send(_ bytes: [UInt8]) throws {
    if self.isByteByByte {
      for byte in bytes { try self.channel.writeInbound(ByteBuffer(bytes: [byte])) }
    } else {
      try self.channel.writeInbound(ByteBuffer(bytes: bytes))
    }
    self.run()
  }

  /// The frames that the client has sent since the last time, once it has nothing more to do.
  func sent() throws -> [HTTP2Frame] {
    self.run()
    while let bytes = try self.channel.readOutbound(as: ByteBuffer.self) {
      self.parser.append(bytes.readableBytesView)
    }
    var frames: [HTTP2Frame] = []
    while let frame = self.parser.next() { frames.append(frame) }
    return frames
  }

  func start(
    _ handler: RecordingHandler,
    method: HTTPStreamRequest.Method = .post,
    target: String = "/demo.Service/Method",
    headers: Headers = ["content-type": ["application/proto"]],
    body: HTTPStreamRequest.Body
  ) -> any HTTPStream {
    let request = HTTPStreamRequest(method: method, target: target, headers: headers, body: body)
    let stream = self.connection.startStream(request, handler: handler)
    handler.stream = stream
    return stream
  }

  func startUnary(_ handler: RecordingHandler, body: String = "hello") -> any HTTPStream {
    self.start(handler, body: .complete(ByteBuffer(string: body)))
  }

  func setWritable(_ isWritable: Bool) {
    self.channel.isWritable = isWritable
    self.channel.pipeline.fireChannelWritabilityChanged()
    self.run()
  }
}

/// Keeps what a stream says.
final class RecordingHandler: HTTPStreamHandler {
  enum Event: Equatable {
    case started
    case writable
    case head(Int, Headers)
    case bytes(String)
    case end(Headers)
    case failed(Code, isUnprocessed: Bool)
  }

  var events: [Event] = []
  var failure: HTTPStreamFailure?
  var info: HTTPConnectionInfo?
  var receivedBytes = 0
  /// Gives bytes back as soon as they arrive.
  var isConsuming = true
  /// Runs after each event.
  var onEvent: ((Event) -> Void)?
  weak var stream: (any HTTPStream)?

  init(isConsuming: Bool = true) { self.isConsuming = isConsuming }

  /// The events, with adjacent pieces of the body joined.
  var joinedEvents: [Event] {
    self.events.reduce(into: []) { joined, event in
      if case .bytes(let more) = event, case .bytes(let text)? = joined.last {
        joined[joined.count - 1] = .bytes(text + more)
      } else {
        joined.append(event)
      }
    }
  }

  private func record(_ event: Event) {
    self.events.append(event)
    self.onEvent?(event)
  }

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.info = connection
    self.record(.started)
  }

  func streamDidBecomeWritable() { self.record(.writable) }
  func streamDidReceive(_ head: HTTPResponseHead) { self.record(.head(head.status, head.headers)) }

  func streamDidReceive(_ bytes: ByteBuffer) {
    XCTAssertGreaterThan(bytes.readableBytes, 0)
    self.receivedBytes += bytes.readableBytes
    if self.isConsuming { self.stream?.consume(bytes.readableBytes) }
    self.record(.bytes(String(buffer: bytes)))
  }

  func streamDidEnd(trailers: Headers) { self.record(.end(trailers)) }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    XCTAssertNil(self.failure)
    self.failure = failure
    self.record(.failed(failure.error.code, isUnprocessed: failure.isUnprocessed))
  }
}

/// Keeps what a connection says to the pool.
final class RecordingDelegate: StreamConnectionDelegate {
  enum Event: Equatable {
    case canServe(Int)
    case closedStream
    case willClose
    case suspect
    case alive
    case closed(Code?)
    case roundTrip(Duration)
  }

  var events: [Event] = []
  var error: ConnectError?

  var closedStreams: Int { self.events.count { $0 == .closedStream } }

  func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    self.events.append(.canServe(concurrentStreams))
  }

  func connectionDidCloseStream(_ connection: any StreamConnection) { self.events.append(.closedStream) }
  func connectionWillClose(_ connection: any StreamConnection) { self.events.append(.willClose) }
  func connectionIsSuspect(_ connection: any StreamConnection) { self.events.append(.suspect) }
  func connectionIsAlive(_ connection: any StreamConnection) { self.events.append(.alive) }

  func connection(_ connection: any StreamConnection, roundTrip: Duration) {
    self.events.append(.roundTrip(roundTrip))
  }

  func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    self.error = error
    self.events.append(.closed(error?.code))
  }
}
