internal import LoopbackServer
internal import NIOCore
internal import NIOPosix

/// A TCP connection without a client library, to check that a server answers at all.
enum PlainConnection {
  /// Sends bytes and returns the answer when the server closes, or when `isEnough` returns true. Nothing is read while
  /// `isEnough` runs.
  static func exchange(
    port: Int,
    _ request: ByteBuffer,
    isEnough: @escaping @Sendable (ByteBuffer) async -> Bool = { _ in false }
  ) async throws -> ByteBuffer {
    let connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(.seconds(5))
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    let timer = connection.channel.eventLoop.scheduleTask(in: .seconds(10)) {
      connection.channel.close(promise: nil)
    }
    defer { timer.cancel() }
    return try await connection.executeThenClose { inbound, outbound in
      try await outbound.write(request)
      var received = ByteBuffer()
      for try await var bytes in inbound {
        received.writeBuffer(&bytes)
        if await isEnough(received) { break }
      }
      return received
    }
  }

  /// Makes a POST over HTTP/1.1 on a new connection, and returns the whole response as text.
  static func post(
    port: Int,
    _ path: String,
    contentType: String = "application/json",
    headers: [String] = [],
    body: ByteBuffer
  ) async throws -> String {
    let lines =
      [
        "POST \(path) HTTP/1.1", "host: 127.0.0.1:\(port)", "connection: close",
        "content-type: \(contentType)", "content-length: \(body.readableBytes)",
      ] + headers
    var request = ByteBuffer(string: lines.joined(separator: "\r\n") + "\r\n\r\n")
    request.writeImmutableBuffer(body)
    return String(buffer: try await self.exchange(port: port, request))
  }

  static func post(port: Int, _ path: String, headers: [String] = [], json: String) async throws -> String {
    try await self.post(port: port, path, headers: headers, body: ByteBuffer(string: json))
  }

  /// The type of the first HTTP/2 frame from the server after the client's preface.
  static func firstFrameType(port: Int) async throws -> UInt8? {
    var preface = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    preface.writeBytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    let received = try await self.exchange(port: port, preface) { $0.readableBytes >= 9 }
    return received.getInteger(at: received.readerIndex + 3)
  }
}
