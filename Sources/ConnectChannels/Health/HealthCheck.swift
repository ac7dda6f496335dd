internal import Connect

/// Whether an endpoint that is connected may have calls (gRFC A17). Events go in, actions come out; it knows no clock.
///
/// Until the first answer the endpoint counts as connecting. A watch that has brought an answer begins again at once when it
/// ends, any other one after a backoff.
struct HealthCheck {
  enum State: Equatable {
    /// Nobody has asked yet, or there is no connection.
    case unknown
    case healthy
    case unhealthy(String)
  }

  enum Action: Equatable {
    case watch
    case watchLater(Duration)
  }

  private(set) var state = State.unknown
  private var backoff = ConnectionBackoff()
  private var hasAnswered = false

  /// The watch has brought something. The first is an answer, or the end.
  mutating func received(_ event: ServerWatch<HealthStatus>.Event, random: inout SplitMix64) -> Action? {
    switch event {
    case .answer(.serving):
      self.hasAnswered = true
      self.state = .healthy
      return nil
    case .answer(let status):
      self.hasAnswered = true
      self.state = .unhealthy("the server says that it is \(status.name)")
      return nil
    case .unimplemented:
      self.state = .healthy
      return nil
    case .ended(let reason):
      self.state = .unhealthy("the health check has failed: \(reason)")
      if self.hasAnswered {
        self.hasAnswered = false
        self.backoff.reset()
        return .watch
      }
      return .watchLater(self.backoff.next(random: &random))
    }
  }

  /// The connection is gone.
  mutating func reset() {
    self.state = .unknown
    self.hasAnswered = false
    self.backoff.reset()
  }
}
