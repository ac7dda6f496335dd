/// What a server says of a service's health (`grpc.health.v1.HealthCheckResponse.ServingStatus`).
package enum HealthStatus: Int, Sendable {
  case unknown = 0
  case serving = 1
  case notServing = 2
  /// The server knows the health service, and not the service that was asked for.
  case serviceUnknown = 3

  /// gRPC's name of the status.
  package var name: String {
    switch self {
    case .unknown: "UNKNOWN"
    case .serving: "SERVING"
    case .notServing: "NOT_SERVING"
    case .serviceUnknown: "SERVICE_UNKNOWN"
    }
  }
}
