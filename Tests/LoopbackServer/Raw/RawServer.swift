internal import Glibc
public import NIOCore
internal import NIOPosix
internal import Synchronization

/// A TCP server without a protocol: an async function receives each connection and writes any bytes.
///
/// ```swift
/// let server = try await RawServer.start { connection in
///   _ = try await connection.receive()
///   try await connection.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
/// }
/// ```
///
/// The connection is closed when the function returns or throws.
public final class RawServer: Sendable {
  /// The port on 127.0.0.1.
  public let port: Int
  private let channel: any Channel
  private let task: Task<Void, Never>
  private let accepted: AcceptCounter

  private init(
    port: Int,
    channel: any Channel,
    task: Task<Void, Never>,
    accepted: AcceptCounter
  ) {
    self.port = port
    self.channel = channel
    self.task = task
    self.accepted = accepted
  }

  public var url: String { "http://127.0.0.1:\(self.port)" }

  /// Connections accepted so far.
  public var acceptedConnections: Int { self.accepted.value }

  /// Listens on a free port of 127.0.0.1.
  public static func start(
    _ serve: @escaping @Sendable (RawConnection) async throws -> Void
  ) async throws -> RawServer {
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    guard let port = listener.channel.localAddress?.port else {
      throw LoopbackServerError("the listening socket has no port")
    }
    let accepted = AcceptCounter()
    let task = Task {
      await withDiscardingTaskGroup { group in
        try? await listener.executeThenClose { connections in
          for try await connection in connections {
            let index = accepted.increment()
            group.addTask {
              try? await connection.executeThenClose { inbound, outbound in
                let input = RawConnection.Input(inbound)
                try await serve(
                  RawConnection(index: index, input: input, output: outbound, channel: connection.channel)
                )
              }
            }
          }
        }
        group.cancelAll()
      }
    }
    return RawServer(port: port, channel: listener.channel, task: task, accepted: accepted)
  }

  /// Stops listening and closes all connections.
  public func stop() async {
    self.task.cancel()
    try? await self.channel.close()
    await self.task.value
  }
}

/// Counts connections.
private final class AcceptCounter: Sendable {
  private let count = Mutex(0)

  var value: Int { self.count.withLock { $0 } }

  /// Increments the count, and returns the old value.
  func increment() -> Int {
    self.count.withLock { count in
      count += 1
      return count - 1
    }
  }
}

/// A connection of a ``RawServer``. Only the server's function reads from it.
public struct RawConnection {
  final class Input {
    private var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator

    init(_ stream: NIOAsyncChannelInboundStream<ByteBuffer>) {
      self.iterator = stream.makeAsyncIterator()
    }

    func next() async throws -> ByteBuffer? {
      try await self.iterator.next()
    }
  }

  /// The connection's number at its server, from 0.
  public let index: Int
  private let input: Input
  private let output: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private let channel: any Channel

  init(index: Int, input: Input, output: NIOAsyncChannelOutboundWriter<ByteBuffer>, channel: any Channel) {
    self.index = index
    self.input = input
    self.output = output
    self.channel = channel
  }

  /// The next bytes that arrive; nil when the client has closed the connection.
  public func receive() async throws -> ByteBuffer? {
    try await self.input.next()
  }

  /// Receives until the bytes so far contain `text`, for example the empty line after an HTTP/1.1 head.
  public func receive(until text: String) async throws -> ByteBuffer {
    var received = ByteBuffer()
    while var bytes = try await self.input.next() {
      received.writeBuffer(&bytes)
      if String(buffer: received).contains(text) { break }
    }
    return received
  }

  public func send(_ bytes: [UInt8]) async throws {
    try await self.output.write(ByteBuffer(bytes: bytes))
  }

  public func send(_ text: String) async throws {
    try await self.output.write(ByteBuffer(string: text))
  }

  /// Closes the connection with a TCP reset instead of an orderly end.
  public func abort() async throws {
    if let socket = self.channel as? any SocketOptionProvider {
      try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
    }
    try await self.channel.close()
  }
}
