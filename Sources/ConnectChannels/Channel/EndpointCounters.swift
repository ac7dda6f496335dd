/// What has happened to an endpoint since it was found.
struct EndpointCounters {
  var openedConnections = 0
  var failedAttempts = 0
  var ejections = 0
  /// The round trip of the last answered ping.
  var lastRoundTrip: Duration?
}
