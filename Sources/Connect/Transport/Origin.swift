/// Where requests go: scheme, host and port, or the path of a Unix domain socket.
///
/// The text forms are `http://host:port`, `https://host:port` and `unix:/path/to/socket`.
public struct Origin: Sendable, Hashable {
  /// How a server is reached. The raw value is the scheme in URLs.
  public enum Scheme: String, Sendable, Hashable {
    /// Cleartext TCP.
    case http
    /// TLS over TCP.
    case https
    /// Cleartext over a Unix domain socket.
    case unix

    /// The port that a URL of this scheme does not name.
    public var defaultPort: Int {
      switch self {
      case .http: 80
      case .https: 443
      case .unix: 0
      }
    }
  }

  /// How the server is reached.
  public var scheme: Scheme
  /// A host name or IP address (IPv6 without brackets); the path of the socket for ``Scheme/unix``.
  public var host: String
  /// 1 to 65,535; 0 for ``Scheme/unix``.
  public var port: Int

  /// An origin of its parts, which are not checked here.
  public init(scheme: Scheme, host: String, port: Int) {
    self.scheme = scheme
    self.host = host
    self.port = port
  }

  /// The value of `:authority` and `host`: the port is left out if it is the scheme's default.
  public var authority: String {
    switch self.scheme {
    case .unix:
      return "localhost"
    case .http, .https:
      let host = self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]" : self.host
      return self.port == self.scheme.defaultPort ? host : "\(host):\(self.port)"
    }
  }
}

extension Origin: CustomStringConvertible {
  public var description: String {
    switch self.scheme {
    case .unix: "unix:\(self.host)"
    case .http, .https: "\(self.scheme.rawValue)://\(self.authority)"
    }
  }
}
