internal import Connect

extension ConnectionPool {
  struct Limits {
    /// Connections while the server speaks HTTP/1.1, and while it speaks HTTP/2 or HTTP/3.
    var http1Connections: Int
    var http2Connections: Int
    /// Calls that may wait besides those for which connections are being opened.
    var waitingCalls: Int
    /// How many streams an HTTP/2 connection is expected to take until it has said so: what RFC 9113, section 6.5.2,
    /// recommends as the least.
    var expectedStreams = 100
    /// How long a connection without streams stays.
    var idleTimeout: Duration
    /// Whether the last HTTP/2 or HTTP/3 connection stays beyond the idle timeout.
    var keepsLast = false

    /// How many connections to open for waiting calls, given the connections that are opening and open.
    func connectionsToOpen(
      _ version: HTTPConnectionInfo.Version?,
      waiting: Int,
      opening: Int,
      open: Int
    ) -> Int {
      let wanted: Int
      let limit: Int
      switch version {
      case .http1: (wanted, limit) = (waiting - opening, self.http1Connections)
      // One at a time: it brings room for many streams.
      case .http2, .http3: (wanted, limit) = (1 - opening, self.http2Connections)
      case nil: (wanted, limit) = (1 - opening, 1)
      }
      return max(min(wanted, limit - opening - open), 0)
    }

    /// How many calls may wait, given the connections that are opening and open.
    func maximumWaiting(_ version: HTTPConnectionInfo.Version?, opening: Int, open: Int) -> Int {
      let expected: Int
      switch version {
      case .http1: expected = self.http1Connections - open
      case .http2, .http3, nil:
        expected = opening > 0 || open < self.http2Connections ? self.expectedStreams : 0
      }
      let (sum, overflow) = self.waitingCalls.addingReportingOverflow(max(expected, 0))
      return overflow ? .max : sum
    }
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
    case waiting(Ticket, [Action])
    case tooMany
    case shutDown
  }
}
