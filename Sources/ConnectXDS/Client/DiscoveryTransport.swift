internal import Connect

/// Makes ADS streams.
protocol DiscoveryTransport {
  /// Starts a stream. To be called on the client's executor, outside of any task, so that the stream inherits no deadline.
  ///
  /// - Parameter onEvent: Called from any thread, in order; the last event is ``DiscoveryEvent/ended(_:)``.
  func open(
    to server: XDSBootstrap.Server,
    onEvent: @escaping @Sendable (DiscoveryEvent) -> Void
  ) -> any DiscoveryCall
}

/// What a stream says.
enum DiscoveryEvent: Sendable {
  /// It has a connection: requests reach the server.
  case started
  /// A response. The next one comes after ``DiscoveryCall/requestNext()``.
  case response(Envoy_Service_Discovery_V3_DiscoveryResponse)
  /// It is over, for this reason.
  case ended(ConnectError)
}

/// An ADS stream. To be used on the client's executor.
protocol DiscoveryCall: AnyObject {
  /// Sends a request.
  ///
  /// - Parameter completion: Called once, from any thread: with true if the next request may be sent.
  func send(
    _ request: Envoy_Service_Discovery_V3_DiscoveryRequest,
    completion: @escaping @Sendable (Bool) -> Void
  )
  /// Lets one more response come.
  func requestNext()
  /// Ends the stream; no event follows that the client looks at.
  func cancel()
}
