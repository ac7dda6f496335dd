internal import ConnectTesting
internal import NIOCore
internal import NIOHTTP1

/// A request and its response, of either HTTP version, for async code.
struct Exchange: Sendable {
  /// The journal's record of the request at its start.
  let request: RequestRecord
  /// The request's head.
  let head: ServerRequestHead
  /// The number of earlier requests to the same path.
  let attempt: Int
  let channel: any Channel
  private let handler: NIOLoopBound<ExchangeHandler>

  init(request: RequestRecord, attempt: Int, channel: any Channel, handler: NIOLoopBound<ExchangeHandler>) {
    self.request = request
    self.head = ServerRequestHead(request)
    self.attempt = attempt
    self.channel = channel
    self.handler = handler
  }

  /// The next piece of the request's body; nil after the last one.
  func nextChunk() async throws -> ByteBuffer? {
    try await self.onLoop { $0.nextChunk(of: request.id, on: channel.eventLoop) }
  }

  func sendHead(status: Int, headers: HeaderFields) async throws {
    try await self.write([Self.head(status, headers)])
  }

  /// Sends bytes, and returns when the client is ready for more.
  func sendBody(_ bytes: ByteBuffer) async throws {
    try await self.write([.body(.byteBuffer(bytes))])
  }

  /// Ends the response, with a last piece of the body if there is one.
  func sendEnd(_ bytes: ByteBuffer = ByteBuffer(), trailers: HeaderFields = [:]) async throws {
    try await self.write(Self.end(bytes, trailers))
  }

  /// Sends a whole response at once.
  func respond(
    status: Int,
    headers: HeaderFields,
    body: ByteBuffer = ByteBuffer(),
    trailers: HeaderFields = [:]
  ) async throws {
    try await self.write([Self.head(status, headers)] + Self.end(body, trailers))
  }

  private static func head(_ status: Int, _ headers: HeaderFields) -> HTTPServerResponsePart {
    let status = HTTPResponseStatus(statusCode: status)
    return .head(HTTPResponseHead(version: .http1_1, status: status, headers: headers.asHTTPHeaders))
  }

  private static func end(_ bytes: ByteBuffer, _ trailers: HeaderFields) -> [HTTPServerResponsePart] {
    let end = HTTPServerResponsePart.end(trailers.fields.isEmpty ? nil : trailers.asHTTPHeaders)
    return bytes.readableBytes > 0 ? [.body(.byteBuffer(bytes)), end] : [end]
  }

  /// Waits; throws earlier if the client goes away or the deadline passes.
  func sleep(_ time: TimeAmount) async throws {
    try await self.onLoop { $0.sleep(time, in: request.id, on: channel.eventLoop) }
  }

  /// After this time, reading and waiting fail with `deadline_exceeded`.
  func setDeadline(in time: TimeAmount) {
    self.channel.eventLoop.execute { [handler, request] in handler.value.setDeadline(in: time, of: request.id)
    }
  }

  /// Resets the stream with an HTTP/2 error code; closes the connection of an HTTP/1.1 request.
  func abort(code: UInt32) async {
    _ = try? await self.onLoop { handler in
      handler.abort(request.id, code: code)
      return channel.eventLoop.makeSucceededVoidFuture()
    }
  }

  /// Closes the connection with all its streams.
  func closeConnection() async {
    let connection = self.connectionChannel
    _ = try? await self.onLoop { handler in
      handler.willAbort(request.id)
      return connection.close()
    }
  }

  /// The socket's channel; for an HTTP/2 stream, the channel of its connection.
  var connectionChannel: any Channel {
    guard self.request.version == .http2, let connection = self.channel.parent else { return self.channel }
    return connection
  }

  /// Returns when the stream or the connection is gone.
  func waitUntilClosed() async {
    _ = try? await self.channel.closeFuture.get()
  }

  /// Announces that the server will end the stream without a response.
  func willAbort() async {
    _ = try? await self.onLoop { handler in
      handler.willAbort(request.id)
      return channel.eventLoop.makeSucceededVoidFuture()
    }
  }

  private func write(_ parts: [HTTPServerResponsePart]) async throws {
    try await self.onLoop { $0.write(parts, of: request.id, on: channel.eventLoop) }
  }

  private func onLoop<Value: Sendable>(
    _ operation: @escaping @Sendable (ExchangeHandler) -> EventLoopFuture<Value>
  ) async throws -> Value {
    try await self.channel.eventLoop.flatSubmit { [handler] in operation(handler.value) }.get()
  }
}
