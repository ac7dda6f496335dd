internal import Connect
internal import ConnectChannels
internal import Foundation
internal import Logging
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import XCTest

@testable internal import ConnectNIO

/// Calls over real sockets to another implementation, nghttp2's server, which sends back what it gets
/// (Debian: `nghttp2-server`).
final class HTTP2SocketTests: XCTestCase {
  private static let serverPath = "/usr/sbin/nghttpd"

  /// Starts the server on a free port; it runs until the returned process is terminated.
  private func startServer() throws -> (Process, port: Int) {
    guard FileManager.default.isExecutableFile(atPath: Self.serverPath) else {
      throw LoopbackServerError("\(Self.serverPath) is not installed: run `make setup`")
    }
    let probe = try ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .bind(host: "127.0.0.1", port: 0).wait()
    let port = try XCTUnwrap(probe.localAddress?.port)
    try probe.close().wait()
    let (process, _) = try Process.start { process in
      process.executableURL = URL(fileURLWithPath: Self.serverPath)
      process.arguments = ["--no-tls", "--echo-upload", "-a", "127.0.0.1", "-d", "/nonexistent", "\(port)"]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
    }
    return (process, port)
  }

  private func connect(port: Int) throws -> any Channel {
    var attempts = 0
    while true {
      do {
        let channel = try ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
          .channelOption(.autoRead, value: false)
          .connect(host: "127.0.0.1", port: port).wait()
        // While nobody listens on an ephemeral port, a socket may get connected to itself.
        guard channel.localAddress == channel.remoteAddress else { return channel }
        try channel.close().wait()
      } catch {
        attempts += 1
        guard attempts < 100 else { throw error }
        Thread.sleep(forTimeInterval: 0.05)
      }
    }
  }

  /// Sends bodies of these sizes at the same time, streamed in pieces, and compares what comes back.
  private func echo(sizes: [Int], pieceSize: Int) throws {
    let (server, port) = try self.startServer()
    defer { server.terminate() }
    let channel = try self.connect(port: port)
    let done = channel.eventLoop.makePromise(of: [ByteBuffer].self)
    channel.eventLoop.execute {
      let delegate = EchoDelegate(sizes: sizes, pieceSize: pieceSize, done: done)
      let connection = HTTP2Connection(
        channel: channel,
        scheme: "http",
        authority: "127.0.0.1:\(port)",
        configuration: HTTP2Configuration(initialStreamWindow: 100_000, connectionWindow: 200_000),
        delegate: delegate,
        logger: Logger(label: "test")
      )
      delegate.retained = connection
      do {
        try channel.pipeline.syncOperations.addHandler(connection)
        // The server speaks first; nothing was to be read before the handler was there.
        try channel.syncOptions?.setOption(.autoRead, value: true)
      } catch {
        done.fail(error)
      }
    }
    let bodies = try done.futureResult.wait()
    for (size, body) in zip(sizes, bodies) {
      XCTAssertTrue(body == EchoHandler.pattern(from: 0, count: size), "\(size) bytes")
    }
    try channel.closeFuture.wait()
  }

  func testOneSmallBody() throws { try self.echo(sizes: [10], pieceSize: 10) }
  func testLargeBodies() throws { try self.echo(sizes: [3_000_000, 1, 500_000, 0], pieceSize: 70_000) }
  func testManyPieces() throws { try self.echo(sizes: [200_000, 200_001], pieceSize: 100) }
}

/// Starts the calls once it may, and drains the connection when they are over.
private final class EchoDelegate: StreamConnectionDelegate {
  private let sizes: [Int]
  private let pieceSize: Int
  private let done: EventLoopPromise<[ByteBuffer]>
  private var handlers: [EchoHandler] = []
  private var closed = 0
  /// Keeps the connection, and itself with it, until the connection is closed.
  var retained: HTTP2Connection?
  private var itself: EchoDelegate?

  init(sizes: [Int], pieceSize: Int, done: EventLoopPromise<[ByteBuffer]>) {
    self.sizes = sizes
    self.pieceSize = pieceSize
    self.done = done
    self.itself = self
  }

  func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    guard self.handlers.isEmpty else { return }
    self.handlers = self.sizes.map { EchoHandler(size: $0, pieceSize: self.pieceSize) }
    for handler in self.handlers {
      let request = HTTPStreamRequest(method: .post, target: "/echo", headers: [:], body: .streamed)
      handler.stream = connection.startStream(request, handler: handler)
      handler.writeNext()
    }
  }

  func connectionDidCloseStream(_ connection: any StreamConnection) {
    self.closed += 1
    if self.closed == self.handlers.count { connection.drain() }
  }

  func connectionWillClose(_ connection: any StreamConnection) {}

  func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    if let error = error ?? self.handlers.compactMap(\.error).first {
      self.done.fail(error)
    } else {
      self.done.succeed(self.handlers.map(\.received))
    }
    self.retained = nil
    self.itself = nil
  }
}

private final class EchoHandler: HTTPStreamHandler {
  private let size: Int
  private let pieceSize: Int
  private var written = 0
  var received = ByteBuffer()
  var error: ConnectError?
  var stream: (any HTTPStream)?

  init(size: Int, pieceSize: Int) {
    self.size = size
    self.pieceSize = pieceSize
  }

  static func pattern(from start: Int, count: Int) -> ByteBuffer {
    self.pattern.getSlice(at: start, length: count) ?? ByteBuffer()
  }

  private static let pattern = ByteBuffer(
    bytes: (0..<(4 << 20)).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }
  )

  func writeNext() {
    let count = min(self.pieceSize, self.size - self.written)
    guard count > 0 else {
      self.stream?.finish(trailers: [:])
      return
    }
    self.stream?.write(Self.pattern(from: self.written, count: count))
    self.written += count
  }

  func streamDidStart(on connection: HTTPConnectionInfo) {}
  func streamDidBecomeWritable() { self.writeNext() }
  func streamDidReceive(_ head: HTTPResponseHead) { XCTAssertEqual(head.status, 200) }

  func streamDidReceive(_ bytes: ByteBuffer) {
    self.received.writeImmutableBuffer(bytes)
    self.stream?.consume(bytes.readableBytes)
  }

  func streamDidEnd(trailers: Headers) { self.stream = nil }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.stream = nil
    self.error = failure.error
  }
}
