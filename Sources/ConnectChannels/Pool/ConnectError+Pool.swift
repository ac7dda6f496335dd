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
    )
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
  static func tooManyWait(_ count: Int, for peer: String) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "\(count) calls already wait for a connection to \(peer), which is the limit; "
        + "see NIOHTTPClient.Configuration.Limits.waitingCalls"
    )
  }
}
