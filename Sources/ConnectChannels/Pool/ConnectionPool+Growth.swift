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
    /// Whether the endpoint is not needed now, so that no connection stays.
    var isUnneeded = false
    /// Whether the last connection stays now.
    var keepsLastNow: Bool { self.keepsLast && !self.isUnneeded }
  }

  /// When a pool opens connections, and for how many calls.
  struct Growth {
    var limits: Limits
    /// The version that the origin speaks, if known. New connections are planned for it.
    var version: HTTPConnectionInfo.Version?
    /// How many attempts in a row have failed beside an open connection.
    var failures = 0
    var isBackingOff = false

    /// How many connections to open for waiting calls.
    func connectionsToOpen(waiting: Int, _ connections: Connections) -> Int {
      let (opening, open) = (connections.count(.opening), connections.count(.open))
      let wanted: Int
      let limit: Int
      switch self.version {
      case .http1: (wanted, limit) = (waiting - opening, self.limits.http1Connections)
      // One at a time: it brings room for many streams.
      case .http2, .http3: (wanted, limit) = (1 - opening, self.limits.http2Connections)
      case nil: (wanted, limit) = (1 - opening, 1)
      }
      return max(min(wanted, limit - opening - open), 0)
    }

    /// How many calls may wait: with those for which connections are being opened, or can be.
    func maximumWaiting(_ connections: Connections) -> Int {
      let open = connections.count(.open)
      let expected: Int
      switch self.version {
      case .http1: expected = self.limits.http1Connections - open
      case .http2, .http3, nil:
        let canGrow = open < self.limits.http2Connections || connections.contains(.opening)
        expected = canGrow ? self.limits.expectedStreams : 0
      }
      let (sum, overflow) = self.limits.waitingCalls.addingReportingOverflow(max(expected, 0))
      return overflow ? .max : sum
    }

    /// An attempt has failed beside an open connection. Without a backoff, another attempt would at once follow each failure.
    mutating func attemptFailed(_ actions: inout [Action]) {
      guard !self.isBackingOff else { return }
      self.failures += 1
      self.isBackingOff = true
      actions.append(.backOff(failures: self.failures))
    }
  }
}
