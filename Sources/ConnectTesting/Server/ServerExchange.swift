public import Connect
public import ConnectChannels
public import NIOCore

/// A request's head as a server sees it.
public struct ServerRequestHead: Sendable {
  /// The version of HTTP that the request came over.
  public var version: HTTPConnectionInfo.Version
  /// `GET` or `POST`.
  public var method: String
  /// The path without the query.
  public var path: String
  /// What follows the question mark; empty if there is none.
  public var query: String
  /// The request's header fields, without pseudo-headers.
  public var headers: Headers
  /// The host that the call told the server in place of its origin's (`CallOptions.authority`), where the transport says so; nil
  /// without one.
  public var authority: String?
  /// The address that the request was sent to, where an ``InMemoryTransport`` has a resolver; else nil.
  public var serverAddress: EndpointAddress?
  /// The values that the call carries, where client and server are in the same process.
  package var context = CallContext()

  /// The head of a request: over HTTP/2 and without a query unless told otherwise.
  public init(
    version: HTTPConnectionInfo.Version = .http2,
    method: String,
    path: String,
    query: String = "",
    headers: Headers
  ) {
    self.version = version
    self.method = method
    self.path = path
    self.query = query
    self.headers = headers
  }
}

/// An HTTP request and its response as a server's code sees them, whatever carries them.
///
/// The functions throw once the client has gone away. A response that is not ended stays open until then.
public protocol ServerExchange: Sendable {
  /// The head of the request.
  var head: ServerRequestHead { get }

  /// The next piece of the request's body as it arrives; nil after the last one. To be called by one task at a
  /// time.
  func nextChunk() async throws -> ByteBuffer?

  /// Sends the response's status and headers.
  func sendHead(status: Int, headers: Headers) async throws

  /// Sends a piece of the response's body; returns when the client takes more.
  func sendBody(_ bytes: ByteBuffer) async throws

  /// Ends the response.
  ///
  /// - Parameters:
  ///   - bytes: A last piece of the body; the trailers, for protocols that have them in the body.
  ///   - trailers: The HTTP trailers; empty for none.
  func sendEnd(_ bytes: ByteBuffer, trailers: Headers) async throws

  /// Sends a whole response.
  func respond(status: Int, headers: Headers, body: ByteBuffer) async throws

  /// Waits, but no longer than the client does and the deadline allows.
  func sleep(for duration: Duration) async throws

  /// After this time, reading and waiting fail with `deadline_exceeded`. Answering stays possible.
  func setDeadline(in duration: Duration)

  /// Ends the stream in the middle, with an HTTP/2 error code.
  func reset(code: UInt32) async

  /// Returns when the client has gone away or the stream has ended.
  func waitUntilClosed() async
}

extension ServerExchange {
  public func respond(status: Int = 200, headers: Headers = [:], body: ByteBuffer) async throws {
    try await self.sendHead(status: status, headers: headers)
    if body.readableBytes > 0 { try await self.sendBody(body) }
    try await self.sendEnd(ByteBuffer(), trailers: [:])
  }

  /// What is left of the request's body.
  ///
  /// - Throws: `ConnectError` with `resource_exhausted` if that is more than `limit` bytes.
  public func body(limit: Int = .max) async throws -> ByteBuffer {
    var body = ByteBuffer()
    while var chunk = try await self.nextChunk() {
      guard body.readableBytes + chunk.readableBytes <= limit else {
        throw ConnectError(code: .resourceExhausted, message: "message is larger than \(limit) bytes")
      }
      body.writeBuffer(&chunk)
    }
    return body
  }
}
