internal import Connect

/// A server's reports of its load on a stream of their own (gRFC A51), as far as an endpoint has to remember them.
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
