/// What has happened to an endpoint since it was found.
struct EndpointCounters {
  var failedCalls = 0
  var openedConnections = 0
  var failedAttempts = 0
  var ejections = 0
}
