internal import Connect

extension ConnectionPool {
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
    /// This many attempts in a row have failed beside an open connection: call `backoffDidElapse` after a time.
    case backOff(failures: Int)
    /// Call `checkIdle` after this time.
    case checkIdle(after: Duration)
    /// No connection is open or being opened, and none will be until one is adopted: calls that wait have to go elsewhere.
    /// The error is nil if everything was in order.
    case lost(ConnectError?)
    /// The pool was shut down and nothing is left. Comes once.
    case finished
  }

  enum Enqueued {
    case waiting(Handle, [Action])
    case tooMany
    case shutDown
  }
}
