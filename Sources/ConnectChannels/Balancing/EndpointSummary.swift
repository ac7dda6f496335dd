/// The endpoints of an update sorted by state, in one pass. Ejected ones do not count as ready.
public struct EndpointSummary {
  /// How many endpoints are in which state; an ejected one that is ready counts as `transientFailure`.
  package private(set) var counts = StateCounts()
  /// The endpoints that are ready and not ejected, in the order of the list.
  public private(set) var ready: [EndpointID] = []
  /// The endpoints that are idle and could connect, in the order of the list.
  public private(set) var idle: [EndpointID] = []
  /// How many endpoints are ready and ejected.
  public private(set) var ejectedCount = 0
  private var lastFailure: (endpoint: Endpoint, error: String)?

  /// The summary of a list of endpoints.
  public init(_ endpoints: [BalancedEndpoint]) {
    for endpoint in endpoints {
      let state = endpoint.effectiveState
      self.counts.add(state)
      switch state {
      case .ready: self.ready.append(endpoint.id)
      case .idle: self.idle.append(endpoint.id)
      case .transientFailure:
        if endpoint.state == .ready {
          self.ejectedCount += 1
        } else if let error = endpoint.lastError {
          self.lastFailure = (endpoint.endpoint, error)
        }
      case .connecting, .shutdown: break
      }
    }
  }

  /// gRPC's state of all endpoints together: `ready` if one is, else `connecting` if one is, else `idle` if one is, else
  /// `transientFailure`, also without any endpoint.
  public var state: ConnectivityState { self.counts.aggregate }

  /// Why calls fail while no endpoint can be reached.
  public var failureMessage: String {
    let total = self.counts.total
    guard total > 0 else { return "there are no addresses to connect to" }
    var message =
      total == 1 ? "the only endpoint is not available" : "none of \(total) endpoints is available"
    if self.ejectedCount > 0 { message += "; \(self.ejectedCount) ejected as unhealthy" }
    if let (endpoint, error) = self.lastFailure { message += "; last error: \(endpoint): \(error)" }
    return message
  }
}
