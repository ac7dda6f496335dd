/// What has happened to an endpoint since it was found.
struct EndpointCounters {
  var failedCalls = 0
  /// Streams of the channel's own, which are no calls: all that were started, and those that have ended and still have a place on
  /// their connection.
  var startedWatches = 0
  var endedWatches = 0
  var openedConnections = 0
  var failedAttempts = 0
  var ejections = 0
  /// Of the last ping that came back.
  var lastRoundTrip: Duration?
  /// Of calls since the last judgement of ``SharedOutliers``.
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
