internal import Connect

extension ConnectionPool {
  struct Limits {
    /// Connections while the origin speaks HTTP/1.1, and while it speaks HTTP/2.
    var http1Connections: Int
    var http2Connections: Int
    var waitingCalls: Int
    /// How long a connection without streams stays.
    var idleTimeout: Duration
  }

  enum Action {
    /// Connect; ends in `connectionClosed`, or in `connectionEstablished` and all that follows.
    case open(ConnectionID)
    /// Start the waiting stream; it is already counted.
    case start(Waiter, on: Connection, ConnectionID)
    case fail(Waiter, ConnectError)
    case drain(Connection)
    case close(Connection, ConnectError)
    /// Give up an attempt to connect. The pool has forgotten it.
    case abandon(ConnectionID, ConnectError)
    /// Call `backoffDidElapse` after this time.
    case backOff(Duration)
    /// Call `checkIdle` after this time.
    case checkIdle(after: Duration)
    /// The pool was shut down and nothing is left. Comes once.
    case finished
  }

  enum Enqueued {
    case waiting(Ticket, [Action])
    case tooMany
    case shutDown
  }
}
