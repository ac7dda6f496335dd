package import Connect
package import NIOCore

/// A call in a wire protocol, as a server sees it: bytes of messages in, bytes of messages out.
package protocol WireCall: Sendable {
  var exchange: any ServerExchange { get }
  var codec: any Codec { get }
  /// The time limit that the client announced.
  var timeout: Duration? { get }
  /// The response's metadata: headers are taken at the first ``sendHeaders()``, trailers at ``finish(_:)``.
  var metadata: ServerMetadata { get }

  /// The next message of the request; nil after the last one. To be called by one task at a time.
  func receive() async throws -> ByteBuffer?
  /// Sends the response's headers, where the protocol can do that before the first message.
  func sendHeaders() async throws
  /// Sends a message of the response; returns when the client takes more.
  func send(_ message: ByteBuffer) async throws
  /// Ends the response.
  func finish(_ error: ConnectError?) async throws
}
