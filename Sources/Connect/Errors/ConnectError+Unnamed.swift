extension ConnectError {
  /// What an error is about whose message does not name the request, since whoever found the error does not know it.
  /// The exchange does: see ``naming(_:method:answeredWith:over:)``.
  package enum Unnamed: Sendable {
    /// A connection to a server that speaks something else, or that cannot be had at all. The message has the host.
    case connection
    /// An HTTP/2 stream that the server reset before it had answered.
    case reset
    /// A response that is none of the protocol's. `text` is the beginning of its body, as far as that is text.
    case response(text: String)
  }
}
