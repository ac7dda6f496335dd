public import Connect

/// How an HTTP/2 connection behaves: what it allows the server to send, and how it finds out that the server
/// is gone. The defaults suit most services.
public struct HTTP2Configuration: Sendable, Hashable {
  /// How to notice a connection that is dead without having been closed (RFC 9113, section 6.7; gRFC A8).
  public struct Keepalive: Sendable, Hashable {
    /// A shorter ``interval`` counts as this one: 10 s, as in other gRPC clients.
    public static var shortestInterval: Duration { .seconds(10) }

    /// A ping is sent when nothing was received for this time; at least ``shortestInterval``. A server that answers
    /// `too_many_pings` doubles it for the connections that follow, which the log says at level `warning`.
    public var interval: Duration
    /// The connection is given up when nothing at all was received for this long after a ping. 20 seconds by default.
    public var timeout: Duration
    /// Whether to ping while no call is open, too. Many servers answer such pings with GOAWAY
    /// (`too_many_pings`), hence off by default: then a call that starts after a longer silence pings at once.
    public var pingsWithoutStreams: Bool

    /// A keepalive as given: by default with a timeout of 20 seconds, and without pings while no call is open.
    public init(
      interval: Duration,
      timeout: Duration = .seconds(20),
      pingsWithoutStreams: Bool = false
    ) {
      self.interval = interval
      self.timeout = timeout
      self.pingsWithoutStreams = pingsWithoutStreams
    }
  }

  /// How many bytes of a response the server may send before the call has taken them (SETTINGS_INITIAL_WINDOW_SIZE).
  /// This bounds what one stream holds in memory. 1 MiB by default; 1 byte to 2^31 - 1.
  public var initialStreamWindow: Int
  /// How many bytes of all responses of a connection may be on their way. Each stream's own window bounds what has
  /// arrived, so that a stream that is not read holds back no other. 16 MiB by default; 65,535 bytes to 2^31 - 1.
  public var connectionWindow: Int
  /// The largest frame that the server may send, in bytes (SETTINGS_MAX_FRAME_SIZE). 16 KiB by default; 16 KiB to
  /// 2^24 - 1.
  public var maxFrameSize: Int
  /// The largest header or trailer list of a response. A call that gets more fails with `resource_exhausted`. Counted
  /// as in RFC 9113, section 6.5.2: the bytes of names and values, and 32 for each field. `HeaderListSize.defaultLimit`
  /// (64 KiB) by default. Much more is of little use: libnghttp2 gives up a connection on which a header block comes in
  /// more than nine frames.
  public var maxHeaderListSize: Int
  /// Pings at intervals; off by default. Without it, too, a connection is tested with a ping when a call has timed out, or
  /// was cancelled, while nothing at all was received, and after ``silenceLimit``. The connection serves no other call before
  /// the answer, which may take 20 seconds, or ``Keepalive/timeout``.
  public var keepalive: Keepalive?
  /// How long a connection with calls may be without a byte from the server before a ping asks whether the server is there. If
  /// the answer takes longer than 20 seconds, or ``Keepalive/timeout``, the calls fail with `unavailable`. 20 seconds by default,
  /// at least 1 second; nil for any time.
  ///
  /// A silence is noticed after one to one and a half times the limit. Until a part of a response has come, there is one ping in
  /// five minutes, which servers allow by default (gRFC A8), and one more if a call is given up; with ``keepalive``, its pings
  /// come instead. So calls to a server that has stopped end after 40 to 50 seconds, and a stream that has been silent for longer
  /// may take five minutes more. The cost is a timer for each connection with calls, which looks every 10 seconds.
  public var silenceLimit: Duration?

  /// A configuration as given; what is left out is as in ``defaults``. Values out of range count as the nearest that
  /// is allowed.
  public init(
    initialStreamWindow: Int = 1 << 20,
    connectionWindow: Int = 16 << 20,
    maxFrameSize: Int = 1 << 14,
    maxHeaderListSize: Int = HeaderListSize.defaultLimit,
    keepalive: Keepalive? = nil,
    silenceLimit: Duration? = .seconds(20)
  ) {
    self.initialStreamWindow = initialStreamWindow
    self.connectionWindow = connectionWindow
    self.maxFrameSize = maxFrameSize
    self.maxHeaderListSize = maxHeaderListSize
    self.keepalive = keepalive
    self.silenceLimit = silenceLimit
  }

  /// Windows of 1 MiB for a stream and 16 MiB for a connection, frames of 16 KiB, headers up to 64 KiB, no keepalive, a ping
  /// after 20 seconds of silence.
  public static let defaults = HTTP2Configuration()
}

extension Int {
  /// The value, or the nearer end of `range` if it lies outside.
  func clamped(to range: ClosedRange<Int>) -> Int {
    Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
  }
}
