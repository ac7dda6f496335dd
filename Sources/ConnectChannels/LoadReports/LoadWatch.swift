internal import Connect

/// A server's load reports on a separate stream (gRFC A51): the state that an endpoint keeps for them.
struct LoadWatch {
  let period: Duration
  /// Nil while there is none.
  var watch: ServerWatch<LoadReport>?
  var timer: (any CallTimer)?
  var backoff = ConnectionBackoff()

  init(every period: Duration) {
    self.period = period
  }
}
