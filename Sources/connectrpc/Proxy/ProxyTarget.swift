import Connect

/// Answers the requests of a ``ProxyServer``.
struct ProxyTarget: Sendable {
  /// Starts a request's stream, on the server's event loop.
  ///
  /// - Parameter isHTTP2: Whether the request came over HTTP/2, and so may have a response while it is being sent.
  /// - Throws: ``ConnectError`` if the request cannot be made; the error is the answer then.
  typealias Start =
    @Sendable (
      _ request: HTTPStreamRequest, _ isHTTP2: Bool, _ handler: any HTTPStreamHandler
    ) throws(ConnectError) -> any HTTPStream

  var start: Start
  /// A call has ended, in whatever way, and its response has been sent.
  var didEnd: @Sendable () -> Void
}
