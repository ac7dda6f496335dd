internal import NIOCore

/// A call in a wire protocol, used by one task.
protocol WireCall: AnyObject {
  var exchange: Exchange { get }
  var codec: MessageCodec { get }
  /// The time limit that the client announced, in milliseconds.
  var timeout: Int64? { get }
  /// To be set before ``sendHeaders()``.
  var headers: HeaderFields { get set }
  /// To be set before ``finish(_:)``.
  var trailers: HeaderFields { get set }

  /// The next message of the request; nil after the last one.
  func receive() async throws -> ByteBuffer?
  /// Sends the response's headers, where the protocol can do that before the first message.
  func sendHeaders() async throws
  /// Sends a message of the response; returns when the client takes more.
  func send(_ message: ByteBuffer) async throws
  /// Ends the response.
  func finish(_ failure: RPCFailure?) async throws
}
