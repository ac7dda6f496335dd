/// An endpoint as balancers see it.
public struct BalancedEndpoint: Sendable, Identifiable {
  /// Names the endpoint for as long as the channel has it.
  public let id: EndpointID
  /// The server as the resolver has named it last.
  public var endpoint: Endpoint
  /// The state of its connections. ``effectiveState`` takes ejection into account.
  public var state: ConnectivityState
  /// Why the last attempt to connect has failed, if it has.
  public var lastError: String?
  /// Whether outlier detection or a health check keeps calls away from the endpoint. It stays connected.
  public var isEjected: Bool
  /// Whether the endpoint counts as connecting since it is not known if its connections still work.
  package var isSuspect = false
  /// Whether it has a connection, though it may not count as ready.
  package var isConnected = false

  /// An endpoint as a channel describes it to a balancer, for tests of balancers.
  public init(
    id: EndpointID,
    endpoint: Endpoint,
    state: ConnectivityState = .idle,
    lastError: String? = nil,
    isEjected: Bool = false
  ) {
    self.id = id
    self.endpoint = endpoint
    self.state = state
    self.lastError = lastError
    self.isEjected = isEjected
  }

  /// The state that counts for balancing: an ejected endpoint that is ready is as good as one that cannot be reached
  /// (gRFC A50).
  public var effectiveState: ConnectivityState {
    self.isEjected && self.state == .ready ? .transientFailure : self.state
  }
}
