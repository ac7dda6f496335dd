/// What the health service of an endpoint's server has said (gRFC A17).
enum EndpointHealth: Equatable {
  /// There is no answer yet, or no connection. The endpoint counts as connecting.
  case unknown
  case healthy
  case unhealthy(String)

  init(_ event: ServerWatch<HealthStatus>.Event) {
    self =
      switch event {
      case .answer(.serving), .unimplemented: .healthy
      case .answer(let status): .unhealthy("the server says that it is \(status.name)")
      case .ended(let reason): .unhealthy("the health check has failed: \(reason)")
      }
  }
}
