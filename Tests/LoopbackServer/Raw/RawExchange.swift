internal import ConnectTesting
public import NIOCore
internal import NIOHTTP2

/// The request of a raw handler.
public struct RawRequest: Sendable {
  private let exchange: Exchange

  init(_ exchange: Exchange) {
    self.exchange = exchange
  }

  /// The request's head.
  public var record: RequestRecord { self.exchange.request }

  /// The number of earlier requests to the same path; 0 for the first one.
  public var attempt: Int { self.exchange.attempt }

  /// The next piece of the body as it arrives; nil after the last one.
  public func nextChunk() async throws -> ByteBuffer? {
    try await self.exchange.nextChunk()
  }

  /// Reads the rest of the body.
  public func body() async throws -> ByteBuffer {
    try await self.exchange.body()
  }
}

/// Answers a request in any way that HTTP allows, and in some ways that it forbids.
///
/// A response that a handler does not finish stays open until the client goes away or the server stops. The functions
/// throw once the stream is gone.
public struct RawResponder: Sendable {
  private let exchange: Exchange

  init(_ exchange: Exchange) {
    self.exchange = exchange
  }

  /// Sends the status and headers. Without a `content-length`, an HTTP/1.1 body goes in chunks.
  public func sendHead(status: Int = 200, headers: HeaderFields = [:]) async throws {
    try await self.exchange.sendHead(status: status, headers: headers)
  }

  /// Sends a piece of the body; returns when the client is ready for more.
  public func sendBody(_ bytes: ByteBuffer) async throws {
    try await self.exchange.sendBody(bytes)
  }

  public func sendBody(_ text: String) async throws {
    try await self.exchange.sendBody(ByteBuffer(string: text))
  }

  public func sendBody(_ bytes: [UInt8]) async throws {
    try await self.exchange.sendBody(ByteBuffer(bytes: bytes))
  }

  /// Ends the response.
  public func finish(trailers: HeaderFields = [:]) async throws {
    try await self.exchange.sendEnd(trailers: trailers)
  }

  /// Sends a whole response.
  public func respond(
    status: Int = 200,
    headers: HeaderFields = [:],
    body: ByteBuffer = ByteBuffer(),
    trailers: HeaderFields = [:]
  ) async throws {
    try await self.exchange.respond(status: status, headers: headers, body: body, trailers: trailers)
  }

  public func respond(status: Int = 200, headers: HeaderFields = [:], text: String) async throws {
    try await self.exchange.respond(status: status, headers: headers, body: ByteBuffer(string: text))
  }

  /// Sends RST_STREAM with an HTTP/2 error code; closes the connection of an HTTP/1.1 request.
  public func reset(code: UInt32) async {
    await self.exchange.abort(code: code)
  }

  /// Closes the connection, with all its streams.
  public func closeConnection() async {
    await self.exchange.closeConnection()
  }

  /// Sends GOAWAY. Does nothing for HTTP/1.1.
  ///
  /// - Parameters:
  ///   - includesThisStream: Whether this request's stream is among those that the server still serves.
  ///   - code: An HTTP/2 error code.
  public func goAway(includesThisStream: Bool = true, code: UInt32 = 0) async throws {
    guard self.exchange.request.version == .http2, let connection = self.exchange.channel.parent else {
      return
    }
    if !includesThisStream { await self.exchange.willAbort() }
    let id = try await self.exchange.channel.getOption(HTTP2StreamChannelOptions.streamID).get()
    let last = includesThisStream ? id : HTTP2StreamID(max(0, Int(id) - 2))
    let code = HTTP2ErrorCode(networkCode: Int(code))
    let payload = HTTP2Frame.FramePayload.goAway(lastStreamID: last, errorCode: code, opaqueData: nil)
    try await connection.writeAndFlush(HTTP2Frame(streamID: .rootStream, payload: payload))
  }

  /// Waits, but not longer than the stream lives.
  public func sleep(_ duration: Duration) async throws {
    try await self.exchange.sleep(TimeAmount(duration))
  }

  /// Returns when the client has gone away, or the server has closed the stream.
  ///
  /// Over HTTP/1.1, the end of a connection is seen only after all bytes that the client sent before. Read the body
  /// first if it may be large.
  public func waitUntilClosed() async {
    await self.exchange.waitUntilClosed()
  }
}
