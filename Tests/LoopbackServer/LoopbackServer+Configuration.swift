extension LoopbackServer {
  /// How a server listens.
  public struct Configuration: Sendable {
    public enum Address: Sendable {
      /// A free port of 127.0.0.1.
      case loopback
      /// A free port of another address of the loopback interface, such as 127.0.0.2.
      case ip(String)
      /// A unix domain socket at a path that does not exist yet.
      case unixSocket(String)
    }

    public enum Versions: Sendable {
      /// Both versions: selected by the client's preface, or by ALPN with TLS.
      case all
      case http1Only
      case http2Only
    }

    public struct TLS: Sendable {
      public var certificates: TestCertificates
      /// Whether a client needs a certificate signed by the same authority.
      public var requiresClientCertificate: Bool

      public init(certificates: TestCertificates, requiresClientCertificate: Bool = false) {
        self.certificates = certificates
        self.requiresClientCertificate = requiresClientCertificate
      }
    }

    /// The server's HTTP/2 settings.
    public struct HTTP2: Sendable {
      public var maxConcurrentStreams = 100
      /// The flow-control window for the client's data, of each stream and of the connection.
      public var windowSize = 65535
      /// The longest header list that the server accepts, in bytes.
      public var maxHeaderListSize = 1 << 20
      /// Whether headers and content length are validated, in requests and in responses.
      public var isStrict = true

      public init() {}
    }

    public var address: Address = .loopback
    public var versions: Versions = .all
    public var tls: TLS?
    public var http2 = HTTP2()
    /// The number of requests that the journal keeps; it only counts later ones.
    public var journalLimit = Int.max

    public init() {}

    public static var plaintext: Configuration { Configuration() }

    public static func tls(_ certificates: TestCertificates) -> Configuration {
      var configuration = Configuration()
      configuration.tls = TLS(certificates: certificates)
      return configuration
    }

    public static func unixSocket(_ path: String) -> Configuration {
      var configuration = Configuration()
      configuration.address = .unixSocket(path)
      return configuration
    }
  }
}
