extension ConnectError {
  /// The subject of an error whose message does not name the request yet, since the code that found the error does not
  /// know the request. ``naming(_:method:answeredWith:over:)`` completes the message.
  package enum Unnamed: Sendable {
    /// A connection that could not be opened, or whose server speaks another protocol. The message has the host.
    case connection
    /// The client's only connection, which is gone for good: no call waits for another one.
    case ended
    /// A connection whose server speaks another version of HTTP than the stream needs. The server has processed
    /// nothing.
    case version
    /// An HTTP/2 stream that the server reset before it had answered.
    case reset
    /// A gRPC response without trailers.
    case trailers
    /// A response that does not follow the protocol. `text` is the beginning of its body, as far as the body is text.
    case response(text: String)
  }

  /// Whether the server speaks another version of HTTP than the stream needs.
  package var isVersionMismatch: Bool {
    if case .version = self.unnamed { true } else { false }
  }
}
