/// What has happened to an endpoint since it was found.
struct EndpointCounters {
  var failedCalls = 0
  var openedConnections = 0
  var failedAttempts = 0
  var ejections = 0
  /// The round trip of the last answered ping.
  var lastRoundTrip: Duration?
  /// Outcomes of calls since the last judgement of ``SharedOutliers``.
  var outcomes = CallOutcomes()

  mutating func callEnded(isSuccess: Bool) {
    if isSuccess {
      self.outcomes.successes += 1
    } else {
      self.outcomes.failures += 1
      self.failedCalls += 1
    }
  }
}
