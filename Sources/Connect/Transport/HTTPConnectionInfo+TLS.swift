/// The names that a certificate is for: its subject alternative names (RFC 5280, section 4.2.1.6). Whoever made the certificate
/// chose them. Names of other types, such as mail addresses, are left out.
public struct CertificateNames: Sendable, Hashable {
  /// The DNS names, as they are in the certificate. They may begin with `*.`.
  public var dnsNames: [String]
  /// The IP addresses as text, IPv6 without brackets.
  public var ipAddresses: [String]
  /// The URIs, as they are in the certificate. A SPIFFE ID is one.
  public var uris: [String]

  /// Names as given; what is left out is empty.
  public init(dnsNames: [String] = [], ipAddresses: [String] = [], uris: [String] = []) {
    self.dnsNames = dnsNames
    self.ipAddresses = ipAddresses
    self.uris = uris
  }
}

extension HTTPConnectionInfo {
  /// TLS of a connection: what was negotiated, and who the server is.
  ///
  /// All streams of a connection share one value, so it costs a call nothing to have it.
  public struct TLS: Sendable, Hashable {
    private final class Shared: Sendable {
      let version: String?
      let applicationProtocol: String?
      let certificates: [[UInt8]]
      let names: CertificateNames

      init(
        _ version: String?,
        _ applicationProtocol: String?,
        _ certificates: [[UInt8]],
        _ names: CertificateNames
      ) {
        self.version = version
        self.applicationProtocol = applicationProtocol
        self.certificates = certificates
        self.names = names
      }
    }

    private let shared: Shared

    /// What is known of TLS.
    public init(
      version: String? = nil,
      applicationProtocol: String? = nil,
      certificates: [[UInt8]] = [],
      names: CertificateNames = CertificateNames()
    ) {
      self.shared = Shared(version, applicationProtocol, certificates, names)
    }

    /// The version of TLS, for example `TLS 1.3`; nil if it is not known.
    public var version: String? { self.shared.version }

    /// The protocol that was negotiated by ALPN (RFC 7301), for example `h2`; nil for none.
    public var applicationProtocol: String? { self.shared.applicationProtocol }

    /// The certificates that the server has shown, its own first, in DER (RFC 5280). Where an earlier session goes on, those
    /// that it has shown then. Without verification they are what the server claims, and prove nothing.
    public var certificates: [[UInt8]] { self.shared.certificates }

    /// The names in the server's own certificate. Without verification they prove nothing, either.
    public var names: CertificateNames { self.shared.names }

    /// Whether everything is the same.
    public static func == (one: TLS, other: TLS) -> Bool {
      one.shared === other.shared
        || (one.version == other.version && one.applicationProtocol == other.applicationProtocol
          && one.certificates == other.certificates && one.names == other.names)
    }

    /// Hashes what was negotiated and the server's own certificate.
    public func hash(into hasher: inout Hasher) {
      hasher.combine(self.version)
      hasher.combine(self.applicationProtocol)
      hasher.combine(self.certificates.first)
    }
  }
}
