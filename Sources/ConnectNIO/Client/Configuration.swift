public import Connect
public import ConnectChannels

extension NIOHTTPClient {
  /// What a client does and how much it takes. The defaults suit most services.
  public struct Configuration: Sendable {
    /// Which version of HTTP connections over TCP speak. ``HTTPVersion/automatic`` by default.
    public var version: HTTPVersion
    /// Bounds on connections and on calls that wait for one.
    public var limits: Limits
    /// How long connecting, idling, and unacknowledged data may take.
    public var timeouts: Timeouts
    /// TLS for `https` origins; without effect on others.
    public var tls: TLS
    /// TLS for the servers of clusters, by the cluster's name, in place of ``tls``: trust, accepted names, ``TLS/serverName``, and
    /// the client's certificate. Nothing is taken over from ``tls``. Empty by default.
    ///
    /// A cluster is one of the routes of an origin (`ChannelConfiguration.routing`). Settings that cannot be used fail the calls
    /// to their cluster alone. Without effect on origins that are not `https`, and on the names of clusters that do not exist.
    /// If other clusters have entries, a cluster without one has ``tls``: the client logs a warning then, and errors of its
    /// handshakes say so.
    ///
    /// The names hold for **all origins of the client**. Whoever gives the routes of one origin chooses the clusters' names, and
    /// with them among these settings: its servers can get the certificate that the client has for a cluster of another
    /// origin. Use a client for each origin if you do not trust the givers of their routes alike.
    public var tlsOfClusters: [String: TLS]
    /// Chooses TLS of clusters in place of ``tlsOfClusters`` and ``tls``, and also whether there is any; nil, the default, for nobody.
    ///
    /// It is asked for each connection to a server of a cluster. Connections that are open stay as they are: change
    /// `Endpoint.security` to have endpoints connect again. Requests have the scheme `https` if their connection has TLS, whatever
    /// their origin says. What is said of ``tlsOfClusters`` holds here too: the names are those of all origins.
    ///
    /// HTTP/3 is for `https` origins alone. A cluster that is to have no TLS cannot be reached over it.
    public var clusterSecurity: (any ClusterSecurityProvider)?
    /// Windows and limits of HTTP/1.1 connections.
    public var http1: HTTP1
    /// Windows, limits and keepalive of HTTP/2 connections.
    public var http2: HTTP2Configuration
    /// HTTP/3 for `https` origins; nil, the default, for none. The module `ConnectHTTP3` has the values.
    public var http3: HTTP3Support?
    /// Names, balancing, health, and the care of connections.
    public var channel: ChannelConfiguration
    /// Which servers are reached through a proxy: ``ProxySelection/off`` by default. Calls to a host that is behind a proxy
    /// fail with `failed_precondition` if `channel.routing` has routes.
    public var proxy: ProxySelection
    /// A socket that is connected already, for the client's only connection; nil, the default, for connections that the client
    /// opens itself.
    ///
    /// The client owns the socket and closes it. The origin of calls gives the scheme (with `https://`, TLS is spoken over
    /// the socket), the name that TLS verifies, and `:authority`; nothing is looked up, and there is no proxy. There must be no
    /// routes (`channel.routing`). Calls to one origin and one version of HTTP share the connection. The connection stays while there are no calls. Once it is gone,
    /// calls fail with `unavailable`, also those that wait for a connection: a connected socket cannot be connected again.
    ///
    /// ``HTTPVersion/automatic`` means HTTP/2 by prior knowledge in cleartext, for all protocols. With TLS the server chooses:
    /// with gRPC beside other protocols, say ``HTTPVersion/http2Only``. Over HTTP/1.1 (``HTTPVersion/http1Only``, or a server's
    /// choice), **one call that is cancelled, or whose deadline passes, closes the connection** for good.
    public var connectedSocket: ConnectedSocket?
    /// How many event loops run the calls to an origin: 1 by default. No more than the group of event loops has; less
    /// than 1 counts as 1. A call that is made on one of these loops lives there, any other on the loop with the fewest
    /// calls. Each loop has its own connections to each server. Names are resolved and outliers are judged once for all
    /// loops.
    ///
    /// One loop makes tens of thousands of calls a second. More loops are for clients that need more than one
    /// processor.
    public var eventLoops: Int
    /// Whether glibc's `malloc` keeps up to 16 MiB of freed memory for each thread that allocates. False by default: what
    /// happens to the memory of a process is its program's decision.
    ///
    /// The first client that is made with it changes the allocator of the **whole process**, for good. The effect is
    /// that of `mallopt(M_MMAP_THRESHOLD, 8 << 20)` and `mallopt(M_TRIM_THRESHOLD, 16 << 20)`. Clients without it do
    /// not change it back. Resident memory can then stay that much higher after a peak.
    ///
    /// It may be worth it where messages have 64 KiB and more. Received messages are assembled in memory that is used again
    /// anyway, but decoded messages are the program's. Without it, glibc may give their memory back to the system and take it
    /// again for the next ones, with a page fault for each 4 KiB. Small messages gain nothing.
    ///
    /// Without effect with another C library or allocator than glibc's. Also without effect where the environment sets
    /// `MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_` or another of mallopt(3)'s thresholds.
    public var keepsFreedMemory: Bool

    /// A configuration as given; what is left out is as in ``defaults``.
    public init(
      version: HTTPVersion = .automatic,
      limits: Limits = .defaults,
      timeouts: Timeouts = .defaults,
      tls: TLS = .defaults,
      tlsOfClusters: [String: TLS] = [:],
      clusterSecurity: (any ClusterSecurityProvider)? = nil,
      http1: HTTP1 = .defaults,
      http2: HTTP2Configuration = HTTP2Configuration(),
      http3: HTTP3Support? = nil,
      channel: ChannelConfiguration = .defaults,
      proxy: ProxySelection = .off,
      connectedSocket: ConnectedSocket? = nil,
      eventLoops: Int = 1,
      keepsFreedMemory: Bool = false
    ) {
      self.version = version
      self.limits = limits
      self.timeouts = timeouts
      self.tls = tls
      self.tlsOfClusters = tlsOfClusters
      self.clusterSecurity = clusterSecurity
      self.http1 = http1
      self.http2 = http2
      self.http3 = http3
      self.channel = channel
      self.proxy = proxy
      self.connectedSocket = connectedSocket
      self.eventLoops = eventLoops
      self.keepsFreedMemory = keepsFreedMemory
    }

    /// HTTP/1.1 or HTTP/2 as the server chooses, the system's resolver and trust roots, no proxy, one event loop.
    public static let defaults = Configuration()
  }
}

extension NIOHTTPClient.Configuration {
  /// How the version of HTTP is chosen.
  public enum HTTPVersion: Sendable, Hashable {
    /// Over TLS the server chooses HTTP/2 or HTTP/1.1 (ALPN); cleartext is HTTP/1.1. For gRPC, which needs
    /// HTTP/2, and in cleartext over a ``connectedSocket``, the same as ``http2Only``.
    case automatic
    /// HTTP/1.1 alone. gRPC calls fail with `failed_precondition`, since they need HTTP/2.
    case http1Only
    /// HTTP/2 alone: over TLS by ALPN, in cleartext by prior knowledge.
    case http2Only
  }

  /// Bounds for each address of an origin. Connections that only finish their last streams are not counted.
  public struct Limits: Sendable, Hashable {
    /// Connections to an origin that speaks HTTP/1.1, each of which carries one call at a time. 100 by default.
    public var http1ConnectionsPerAddress: Int
    /// Connections to an origin that speaks HTTP/2. A second one is opened when the first has as many streams
    /// as the server allows. 4 by default. A service config may raise it, up to 10.
    public var http2ConnectionsPerAddress: Int
    /// Calls that may wait for a connection besides those for which one is being opened. Further calls fail with
    /// `resource_exhausted`. 100,000 by default; 0 lets none wait for others to end.
    ///
    /// A connection that is being opened is expected to take 100 calls, or one if the origin is known to speak HTTP/1.1.
    public var waitingCalls: Int

    /// Limits as given; what is left out is as in ``defaults``. Numbers out of range count as the nearest that is
    /// allowed.
    public init(
      http1ConnectionsPerAddress: Int = 100,
      http2ConnectionsPerAddress: Int = 4,
      waitingCalls: Int = 100_000
    ) {
      self.http1ConnectionsPerAddress = http1ConnectionsPerAddress
      self.http2ConnectionsPerAddress = http2ConnectionsPerAddress
      self.waitingCalls = waitingCalls
    }

    /// 100 connections over HTTP/1.1, 4 over HTTP/2, 100,000 waiting calls.
    public static let defaults = Limits()
  }

  /// How long connections may take for their own steps. Calls have their own deadlines.
  public struct Timeouts: Sendable, Hashable {
    /// How long it may take to find the addresses of a name, and then to connect to one of them: TCP, the proxy's
    /// tunnel, and TLS. After that, calls fail with `unavailable`. 20 seconds by default, which is gRPC's.
    public var connect: Duration
    /// How long a connection without calls is kept. 60 seconds by default.
    public var idle: Duration
    /// How long sent data may stay unacknowledged, or unsent because the server does not read. After that, the system
    /// gives up the connection, and its calls fail with `unavailable`. 20 seconds by default, which is what gRPC sets
    /// where keepalive is on (gRFC A18). Nil for the system's own time, which is a quarter of an hour and more: for
    /// uploads to servers that stop reading for longer. From 1 ms to 24 days.
    ///
    /// This is the option `TCP_USER_TIMEOUT` (RFC 5482) of TCP connections. It has no effect on other sockets, and
    /// where the system does not have it, which the log says at level `debug`.
    public var unacknowledged: Duration?

    /// Timeouts as given; what is left out is as in ``defaults``. More than 100 years count as 100 years.
    public init(
      connect: Duration = .seconds(20),
      idle: Duration = .seconds(60),
      unacknowledged: Duration? = .seconds(20)
    ) {
      self.connect = connect
      self.idle = idle
      self.unacknowledged = unacknowledged
    }

    /// 20 seconds to connect, 60 seconds idle, 20 seconds unacknowledged.
    public static let defaults = Timeouts()
  }

  /// HTTP/1.1 connections.
  public struct HTTP1: Sendable, Hashable {
    /// How many bytes of a response a call may have received and not yet consumed. At this number, the connection is
    /// not read. One read more (at most 256 KiB) may come on top. 1 MiB by default.
    public var responseWindow: Int
    /// The largest header or trailer list of a response. A call that gets more fails with `resource_exhausted`. Counted
    /// as in RFC 9113, section 6.5.2: the bytes of names and values, and 32 for each field.
    /// `HeaderListSize.defaultLimit` (64 KiB) by default.
    public var maxHeaderListSize: Int

    /// A configuration as given; what is left out is as in ``defaults``.
    public init(responseWindow: Int = 1 << 20, maxHeaderListSize: Int = HeaderListSize.defaultLimit) {
      self.responseWindow = responseWindow
      self.maxHeaderListSize = maxHeaderListSize
    }

    /// A window of 1 MiB, headers up to 64 KiB.
    public static let defaults = HTTP1()
  }

  /// TLS, for `https` origins.
  ///
  /// With ``CertificateVerification/full``, a server is who it says if its certificate leads to a trusted one (RFC 5280) and
  /// has the host's name as a subject alternative name (RFC 9525): a name, also with `*` as the whole first label and two
  /// labels or more behind it, or the very IP address. The common name does not count. The host counts also where a proxy or a
  /// resolver says what to connect to.
  ///
  /// Files are read when the first connection is opened. When they have changed, as certificates that are renewed do,
  /// new connections use the new contents. Open connections and their calls go on as they are. New files may be
  /// unusable, such as a certificate whose private key has not been replaced yet. Then the log has a warning, and the
  /// previous contents stay in use.
  public struct TLS: Sendable, Hashable {
    /// The certificates that connections trust.
    ///
    /// Each of them is trusted by itself; its issuer is not needed.
    ///
    /// - A server that shows one of these very certificates, byte for byte, is trusted (a pinned certificate),
    ///   whether it is self-signed or not.
    /// - A certificate authority, which may be an intermediate one, is trusted for what it has signed. A certificate is
    ///   no authority if its basic constraints say CA:FALSE, or if its extended key usage leaves out servers. Without
    ///   basic constraints, only a self-issued certificate of version 1 is an authority.
    ///
    /// Dates, signatures and the host name are always checked. Certificates that have expired, or are not valid yet, count as
    /// if they were not there, also among those that the server shows: they do not hide renewed ones. A certificate in
    /// OpenSSL's form `TRUSTED CERTIFICATE` is only trusted as a self-signed authority.
    public enum TrustRoots: Sendable, Hashable {
      /// The certificate authorities that the system trusts, on Linux those of `/etc/ssl/certs`, which are in
      /// Debian's package `ca-certificates`. Without any, calls fail with `failed_precondition`.
      case systemDefault
      /// The certificates in this PEM file, and no others.
      case pemFile(String)
      /// The certificates in these bytes, in PEM, and no others.
      case pemBytes([UInt8])
      /// The authorities of a SPIFFE trust domain, for example `prod.example`, in this file, and no others: a SPIFFE bundle,
      /// which is a JWK set with keys for `x509-svid`, or a map of trust domains to such sets (`trust_domains`).
      ///
      /// A server then needs a SPIFFE ID of this trust domain, besides what ``CertificateVerification`` asks for. Servers whose
      /// certificates have no host name need ``CertificateVerification/names(_:)`` or ``CertificateVerification/chainOnly``.
      case spiffeBundleFile(String, trustDomain: String)
    }

    /// How the client verifies who the server is.
    public enum CertificateVerification: Sendable, Hashable {
      /// The server's certificate has to be valid, trusted, and for this host.
      case full
      /// The server's certificate has to be valid and trusted, and has to have one of these names, whatever the host is. The
      /// host, or ``TLS/serverName``, is still sent to the server (SNI). An empty list fails calls with `failed_precondition`.
      case names([AcceptedName])
      /// The server's certificate has to be valid and trusted, whatever its names are: whoever has any certificate of a trusted
      /// authority can be the server. For authorities of one service, or with a ``TLS/serverVerifier``.
      case chainOnly
      /// Any certificate is accepted: anybody in between can read and change everything.
      case none
    }

    /// A name that a server's certificate may have, for ``CertificateVerification/names(_:)``. A name that cannot be used fails
    /// calls with `failed_precondition`.
    public enum AcceptedName: Sendable, Hashable {
      /// A DNS name in ASCII. It is compared as in RFC 9525, section 6.3: without regard to case, and with the certificate's
      /// wildcards.
      case dnsName(String)
      /// An IP address, IPv6 with or without brackets.
      case ipAddress(String)
      /// A URI, which has to be the same byte for byte. For SPIFFE IDs use ``spiffeID(_:)``.
      case uri(String)
      /// A SPIFFE ID with a path, for example `spiffe://prod.example/billing`. The certificate must have no other URI, and
      /// must not be an authority's (the SPIFFE standard "X.509-SVID", section 5.2).
      case spiffeID(String)
      /// Any SPIFFE ID of a trust domain, for example of `prod.example`, otherwise as with ``spiffeID(_:)``.
      case spiffeTrustDomain(String)
    }

    /// A certificate chain and its private key, in PEM: what the client shows to servers that ask for it.
    public enum ClientCertificate: Sendable, Hashable {
      /// The paths of PEM files. The chain begins with the client's own certificate.
      case pemFiles(chain: String, privateKey: String)
      /// The contents of such files. The chain begins with the client's own certificate.
      case pemBytes(chain: [UInt8], privateKey: [UInt8])
    }

    /// A version of TLS that connections may have at least: 1.2 (RFC 5246) or 1.3 (RFC 8446).
    public enum Version: Sendable, Hashable {
      /// TLS 1.2 or TLS 1.3.
      case tls12, tls13
    }

    /// The certificates that connections trust: those of the system by default.
    public var trustRoots: TrustRoots
    /// How the server's certificate is verified: ``CertificateVerification/full`` by default.
    public var certificateVerification: CertificateVerification
    /// Asks the program about each server that has passed everything else, over TCP and QUIC alike. Nil, the default, for
    /// nobody.
    public var serverVerifier: ServerVerifier?
    /// The paths of files with certificate revocation lists (RFC 5280, section 5), in PEM or DER. None by default.
    ///
    /// A server is refused, with `unavailable`, if its certificate or that of an intermediate authority is in the list of the
    /// authority that has issued it. So is a server with a certificate whose authority has only lists that are out of date, or
    /// not signed by that authority. Certificates of authorities without a list here are not looked up. Neither are trusted
    /// certificates themselves, and pinned ones. Without effect if any certificate is accepted.
    ///
    /// Lists that are not complete fail calls with `failed_precondition`: delta lists, those with an issuing distribution
    /// point or another critical extension, and those without `nextUpdate`.
    ///
    /// Connections that are open stay open: lists count for new ones.
    public var revocationLists: [String]
    /// The name that the server's certificate must have and that is sent to the server (SNI), instead of the origin's host.
    ///
    /// A name in ASCII, whose case and trailing dot do not count, or an IP address, IPv6 with or without brackets. For an
    /// address no name is sent (RFC 6066, section 3). Anything else fails calls with `failed_precondition`.
    public var serverName: String?
    /// What the client shows to servers that ask for a certificate; nil, the default, for nothing.
    public var clientCertificate: ClientCertificate?
    /// The lowest version of TLS that is accepted: TLS 1.2 by default.
    public var minimumVersion: Version
    /// The least time between two checks of the files for changes, which new connections make. 10 seconds by default;
    /// with zero, each connection checks. The system's own trust roots are read once.
    public var fileCheckInterval: Duration
    /// A file to which the secrets of all sessions are appended, in the format of `SSLKEYLOGFILE`. Tools such as
    /// Wireshark can then decrypt what they have recorded. Nil, the default, for none. Anyone who can read the file can
    /// read the calls: it is for debugging alone. A file that cannot be opened fails calls with `failed_precondition`.
    public var keyLogFile: String?

    /// A configuration as given; what is left out is as in ``defaults``. Files are read when the first connection is
    /// opened, and those that cannot be used fail calls then, with `failed_precondition`.
    public init(
      trustRoots: TrustRoots = .systemDefault,
      certificateVerification: CertificateVerification = .full,
      serverVerifier: ServerVerifier? = nil,
      revocationLists: [String] = [],
      serverName: String? = nil,
      clientCertificate: ClientCertificate? = nil,
      minimumVersion: Version = .tls12,
      fileCheckInterval: Duration = .seconds(10),
      keyLogFile: String? = nil
    ) {
      self.trustRoots = trustRoots
      self.certificateVerification = certificateVerification
      self.serverVerifier = serverVerifier
      self.revocationLists = revocationLists
      self.serverName = serverName
      self.clientCertificate = clientCertificate
      self.minimumVersion = minimumVersion
      self.fileCheckInterval = fileCheckInterval
      self.keyLogFile = keyLogFile
    }

    /// The system's trust roots, full verification, TLS 1.2 or later, no client certificate.
    public static let defaults = TLS()
  }
}
