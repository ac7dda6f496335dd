public import ConnectNIO

extension HTTP3Support {
  /// HTTP/3 beside HTTP/1.1 and HTTP/2 over TCP, for `https` origins where the client finds it. All protocols use it, gRPC too.
  ///
  /// The client finds it in `alt-svc` fields of responses (RFC 7838). With a `DNSResolver`, which asks DNS servers
  /// itself, it also finds it in HTTPS records (RFC 9460). Then a connection to an address starts with QUIC, and with
  /// TCP after 250 ms, or at once if QUIC fails. Where a TCP connection exists, or comes first, QUIC is tried beside
  /// it. Once QUIC is ready, new calls use it, and the TCP connections finish their calls.
  ///
  /// HTTP/3 counts as broken where QUIC fails or times out though TCP works, or where QUIC falls silent in use. The
  /// client then uses TCP for 5 minutes, doubled with each further failure up to a day, until HTTP/3 works again. It
  /// does so for one server if HTTP/3 has worked at others, else for all servers of the origin. The client forgets
  /// these failures when the machine's addresses change.
  ///
  /// What is found, and what is broken, holds for a cluster alone (`ChannelConfiguration.routing`): HTTPS records say nothing of
  /// clusters, and a cluster's responses say nothing of other servers.
  ///
  /// Alternatives at other hosts, ALTSVC frames, and aliases and address hints of HTTPS records are not used.
  /// `alt-used` is not sent. Origins behind a proxy are served over TCP alone.
  public static var discovered: HTTP3Support { .discovered(.defaults) }

  /// As ``discovered``, with a configuration.
  public static func discovered(_ configuration: HTTP3Configuration) -> HTTP3Support {
    HTTP3Support(configuration, isDiscovered: true)
  }
}
