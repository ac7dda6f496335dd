import ConnectChannels
import ConnectNIO
import Foundation
import Glibc
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A server whose every byte a test decides: it runs a script for each chunk of received data.
final class RawServer: Sendable {
  /// One connection, on its event loop.
  final class Connection {
    let channel: any Channel
    /// The connection's number, counted from 0 in the order of acceptance.
    let index: Int
    /// Received bytes that were not taken yet.
    var received = ByteBuffer()
    /// A counter for scripts.
    var requests = 0
    private var frames = HTTP2FrameParser()

    init(channel: any Channel, index: Int) {
      self.channel = channel
      self.index = index
    }

    var text: String { String(buffer: self.received) }

    /// Takes one whole request with a content-length or without a body; nil if it is not there yet.
    func takeRequest() -> (head: String, body: String)? {
      let text = self.text
      guard let end = text.range(of: "\r\n\r\n") else { return nil }
      let head = String(text[..<end.lowerBound])
      var length = 0
      for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix("content-length:") {
        length = Int(line.split(separator: ":")[1].trimmingCharacters(in: .whitespaces)) ?? 0
      }
      let rest = text[end.upperBound...]
      guard rest.utf8.count >= length else { return nil }
      self.received.moveReaderIndex(forwardBy: head.utf8.count + 4 + length)
      self.requests += 1
      return (head, String(rest.prefix(length)))
    }

    /// Takes one whole HTTP/2 frame, behind the client's preface; nil if it is not there yet.
    func takeFrame() -> HTTP2Frame? {
      self.frames.append(self.received.readableBytesView)
      self.received.clear()
      return self.frames.next()
    }

    func send(_ frames: HTTP2Frame...) {
      self.channel.writeAndFlush(ByteBuffer(bytes: frames.flatMap(\.bytes)), promise: nil)
    }

    func send(_ text: String) {
      self.channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
    }

    /// Sends a whole response with a content-length.
    func respond(_ body: String = "pong", status: String = "200 OK", fields: String = "") {
      self.send("HTTP/1.1 \(status)\r\ncontent-length: \(body.utf8.count)\r\n\(fields)\r\n\(body)")
    }

    func close() {
      self.channel.close(promise: nil)
    }

    /// Closes with RST.
    func reset() {
      _ = (self.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
      self.channel.close(promise: nil)
    }
  }

  typealias Script = @Sendable (Connection) -> Void

  private let channel: any Channel
  private let children: Children
  let port: Int
  private let group = MultiThreadedEventLoopGroup.singleton

  init(
    unixPath: String? = nil,
    boundSocket: CInt? = nil,
    tls: NIOSSLContext? = nil,
    onConnect: @escaping Script = { _ in },
    onData: @escaping Script
  ) async throws {
    let children = Children()
    let bootstrap = ServerBootstrap(group: self.group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.backlog, value: 512)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let index = children.add(channel)
          if let tls {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
          }
          try channel.pipeline.syncOperations.addHandler(
            ScriptHandler(
              connection: Connection(channel: channel, index: index),
              onConnect: onConnect,
              onData: onData
            )
          )
        }
      }
    if let unixPath {
      // NIO's own function takes shorter paths only.
      self.channel = try await bootstrap.bind(to: SocketAddress(EndpointAddress.unix(path: unixPath))).get()
      self.port = 0
    } else if let boundSocket {
      self.channel = try await bootstrap.withBoundSocket(boundSocket).get()
      self.port = 0
    } else {
      self.channel = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
      self.port = self.channel.localAddress?.port ?? 0
    }
    self.children = children
  }

  /// Runs a script on a socket that is connected already.
  static func serve(
    _ socket: CInt,
    tls: NIOSSLContext? = nil,
    onData: @escaping Script
  ) async throws -> any Channel {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
          try channel.pipeline.syncOperations.addHandler(
            ScriptHandler(
              connection: Connection(channel: channel, index: 0),
              onConnect: { _ in },
              onData: onData
            )
          )
        }
      }
      .withConnectedSocket(socket).get()
  }

  /// Connections accepted so far.
  var accepted: Int { self.children.count }

  /// Connections that are open.
  var open: Int { self.children.open }

  func close() async {
    try? await self.channel.close().get()
    await self.children.closeAll()
  }
}

private final class Children: Sendable {
  private struct State {
    var channels: [any Channel] = []
    var open = 0
  }

  private let state = Mutex(State())

  var count: Int { self.state.withLock { $0.channels.count } }
  var open: Int { self.state.withLock { $0.open } }

  func add(_ channel: any Channel) -> Int {
    channel.closeFuture.whenComplete { _ in self.state.withLock { $0.open -= 1 } }
    return self.state.withLock { state in
      state.channels.append(channel)
      state.open += 1
      return state.channels.count - 1
    }
  }

  func closeAll() async {
    for channel in self.state.withLock({ $0.channels }) {
      try? await channel.close().get()
    }
  }
}

private final class ScriptHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let connection: RawServer.Connection
  private let onConnect: RawServer.Script
  private let onData: RawServer.Script

  init(
    connection: RawServer.Connection,
    onConnect: @escaping RawServer.Script,
    onData: @escaping RawServer.Script
  ) {
    self.connection = connection
    self.onConnect = onConnect
    self.onData = onData
  }

  func channelActive(context: ChannelHandlerContext) {
    self.onConnect(self.connection)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = self.unwrapInboundIn(data)
    self.connection.received.writeBuffer(&bytes)
    self.onData(self.connection)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
