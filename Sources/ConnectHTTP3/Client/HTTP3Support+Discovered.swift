public import ConnectNIO

extension HTTP3Support {
  /// HTTP/3 beside HTTP/1.1 and HTTP/2 over TCP, for `https` origins where the client finds it. All protocols use it, gRPC too.
  ///
  /// The client finds it in `alt-svc` fields of responses (RFC 7838), and in HTTPS records (RFC 9460) where it asks DNS servers
  /// itself, with a `DNSResolver`. Then a connection to an address starts with QUIC, and with TCP after 250 ms, or at once if QUIC
  /// fails. Where a TCP connection exists, or comes first, QUIC is tried beside it; when that is ready, new calls use it, and the
  /// TCP connections finish their calls.
  ///
  /// Where QUIC fails or times out though TCP works, or falls silent in use, the client uses TCP for 5 minutes, doubling with each
  /// further failure up to a day, until HTTP/3 works again: for that server where HTTP/3 has worked at others, else for all of the
  /// origin. The client forgets these failures when the machine's addresses change.
  ///
  /// Alternatives at other hosts, ALTSVC frames, and aliases and address hints of HTTPS records are not used; `alt-used` is not sent.
  /// Origins behind a proxy are served over TCP alone.
  public static var discovered: HTTP3Support { .discovered(.defaults) }

  /// As ``discovered``, with a configuration.
  public static func discovered(_ configuration: HTTP3Configuration) -> HTTP3Support {
    HTTP3Support(configuration, isDiscovered: true)
  }
}
