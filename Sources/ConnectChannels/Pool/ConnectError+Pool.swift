package import Connect

extension ConnectError {
  package static func connectionLost(_ peer: String) -> ConnectError {
    ConnectError(
      code: .unavailable,
      message: "the connection to \(peer) was lost before the request was sent"
    )
  }

  package static var clientShutDown: ConnectError {
    ConnectError(
      code: .unavailable,
      message: "the HTTP client was shut down and takes no more calls; "
        + "make calls before the shutdown, or make another HTTP client"
    ).asFinal
  }

  /// The error of an attempt to connect that nobody waits for.
  static var connectionReplaced: ConnectError {
    ConnectError(
      code: .unavailable,
      message: "the attempt to connect was given up, since another connection or address serves the calls"
    )
  }
}

extension ConnectError {
  /// - Parameters:
  ///   - count: How many calls wait.
  ///   - limit: How many may wait in addition to those that a connection is being opened for.
  static func tooManyWait(_ count: Int, for peer: String, limit: Int) -> ConnectError {
    var who = count == 0 ? "no call may wait" : "\(count) calls already wait"
    who += " for a connection to \(peer)"
    if count > limit { who += ", \(count - limit) of them for one that is being opened" }
    return ConnectError(
      code: .resourceExhausted,
      message: "\(who): waitingCalls is \(limit), which is the limit; "
        + "see NIOHTTPClient.Configuration.Limits.waitingCalls"
    )
  }
}
