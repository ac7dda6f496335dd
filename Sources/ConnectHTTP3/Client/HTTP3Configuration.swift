public import Connect

/// How an HTTP/3 connection behaves. The defaults suit most services.
///
/// Limits on connections, timeouts and TLS are those of the client's configuration. QUIC connections count as HTTP/2
/// ones do. `timeouts.unacknowledged` holds for what QUIC sends. `timeouts.idle` is also the idle timeout that QUIC
/// tells the server.
public struct HTTP3Configuration: Sendable, Hashable {
  /// How many bytes of a response the server may send before the call has taken them (QUIC's
  /// `initial_max_stream_data_bidi_local`). This bounds what one stream holds in memory. 1 MiB by default; 1 byte to
  /// 2^31 - 1.
  public var initialStreamWindow: Int
  /// How many bytes of all responses of a connection may be on their way. Each stream's own window bounds what has
  /// arrived, so that a stream that is not read holds back no other. 16 MiB by default; 65,535 bytes to 2^31 - 1.
  public var connectionWindow: Int
  /// The largest header or trailer list of a response. A call that gets more fails with `resource_exhausted`. Counted
  /// as in RFC 9114, section 4.2.2: the bytes of names and values, and 32 for each field. `HeaderListSize.defaultLimit`
  /// (64 KiB) by default.
  public var maxHeaderListSize: Int
  /// Sends a ping after this time without anything received, while there are calls. Nil, the default, pings after half
  /// of the shorter idle timeout of client and server, which is just enough to keep the connection.
  public var pingInterval: Duration?
  /// Whether to ping while no call is open, too. The connection then stays for as long as the client's configuration
  /// says, even if the server would forget it sooner. False by default.
  public var pingsWithoutStreams: Bool
  /// Whether unary calls of methods without side effects are sent before the handshake of a connection is complete
  /// (early data, 0-RTT; RFC 9001, section 4.6). That saves a round trip on each connection to a server after the first one
  /// to it. False by default.
  ///
  /// Whoever can copy datagrams can have the server process such a call again, so only methods with
  /// `idempotency_level = NO_SIDE_EFFECTS` are sent so. Other calls wait for the handshake. What a server rejects, or
  /// answers with the status 425, is sent again without early data.
  ///
  /// A connection with early data counts as ready before the server has shown that it is there. If it does not answer
  /// within 3 seconds, or with `.discovered` before TCP is ready, its calls are sent again on another connection.
  public var usesEarlyData: Bool
  /// The largest datagrams that the network between client and server is known to carry, in bytes: 8,940 on many networks
  /// of data centers (jumbo frames of 9,001 bytes or more). Uploads of large messages then take about a third less processor time.
  ///
  /// Nil, the default, finds by itself what the path takes, up to 1,452 bytes (RFC 9000, section 14.3). A size of 1,453 to
  /// 9,200 is used after the handshake, without a test of the path before. No datagram is larger than the network interface
  /// takes. If the path does not carry that size after all, the connection goes on with 1,200 bytes once the server has
  /// answered nothing for some round trips; with IPv4, a router may cut the datagrams instead, which is slow. So set it only
  /// where all servers can be reached with it. Smaller values count as nil.
  public var datagramSize: Int?

  /// A configuration as given; what is left out is as in ``defaults``. Values out of range count as the nearest that
  /// is allowed.
  public init(
    initialStreamWindow: Int = 1 << 20,
    connectionWindow: Int = 16 << 20,
    maxHeaderListSize: Int = HeaderListSize.defaultLimit,
    pingInterval: Duration? = nil,
    pingsWithoutStreams: Bool = false,
    usesEarlyData: Bool = false,
    datagramSize: Int? = nil
  ) {
    self.initialStreamWindow = initialStreamWindow
    self.connectionWindow = connectionWindow
    self.maxHeaderListSize = maxHeaderListSize
    self.pingInterval = pingInterval
    self.pingsWithoutStreams = pingsWithoutStreams
    self.usesEarlyData = usesEarlyData
    self.datagramSize = datagramSize
  }

  /// Windows of 1 MiB for a stream and 16 MiB for a connection, headers up to 64 KiB, pings only as needed.
  public static let defaults = HTTP3Configuration()
}
