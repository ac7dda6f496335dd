/// The state of a channel, or of an endpoint's connection. The names are gRPC's
/// (https://github.com/grpc/grpc/blob/master/doc/connectivity-semantics-and-api.md).
public enum ConnectivityState: String, Sendable, Hashable, CaseIterable {
  /// No connection, and no attempt: the next call begins one.
  case idle = "IDLE"
  /// The first attempts since the start, or since the last connection.
  case connecting = "CONNECTING"
  /// Calls can be sent.
  case ready = "READY"
  /// No attempt has succeeded. Further attempts follow after a backoff, while the state stays. Calls fail at once,
  /// instead of waiting for as long as the server is down (gRFC A62).
  case transientFailure = "TRANSIENT_FAILURE"
  /// Closed for good.
  case shutdown = "SHUTDOWN"
}

extension ConnectivityState: CustomStringConvertible {
  public var description: String { self.rawValue }
}
