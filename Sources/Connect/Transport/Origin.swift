/// Where requests go: scheme, host and port, or a socket of this machine or of a virtual one.
///
/// The text forms are `http://host:port`, `https://host:port`, `unix:/path/to/socket`, `unix-abstract:NAME` and
/// `vsock:CID:PORT`.
public struct Origin: Sendable, Hashable {
  /// How a server is reached. The raw value is the scheme in URLs.
  public enum Scheme: String, Sendable, Hashable {
    /// Cleartext TCP.
    case http
    /// TLS over TCP.
    case https
    /// Cleartext over a Unix domain socket.
    case unix
    /// Cleartext over a Unix domain socket with a name in Linux's abstract namespace instead of a path.
    case unixAbstract = "unix-abstract"
    /// Cleartext to a virtual machine or its host (vsock(7)).
    case vsock

    /// The port that a URL of this scheme does not name.
    public var defaultPort: Int {
      switch self {
      case .http: 80
      case .https: 443
      case .unix, .unixAbstract, .vsock: 0
      }
    }

    /// Whether servers are reached over TCP. Otherwise there is no host that is looked up, no TLS and no proxy.
    package var isTCP: Bool { self == .http || self == .https }

    /// Whether it is a Unix domain socket, with a path or a name.
    package var isUnixSocket: Bool { self == .unix || self == .unixAbstract }

    /// Whether nobody on the way can read along. What goes between virtual machines may be read by their host, and by
    /// what the host forwards it to.
    package var isPrivate: Bool { self == .https || self.isUnixSocket }
  }

  /// How the server is reached.
  public var scheme: Scheme
  /// A host name or IP address (IPv6 without brackets); the path of the socket for ``Scheme/unix``, its name for
  /// ``Scheme/unixAbstract``, the context identifier (CID) of the machine for ``Scheme/vsock``.
  public var host: String
  /// 1 to 65,535; 0 for ``Scheme/unix`` and ``Scheme/unixAbstract``; 0 to 4,294,967,294 for ``Scheme/vsock``.
  public var port: Int

  /// An origin of its parts, which are not checked here.
  public init(scheme: Scheme, host: String, port: Int) {
    self.scheme = scheme
    self.host = host
    self.port = port
  }

  /// The value of `:authority` and `host`: the port is left out if it is the scheme's default. Sockets other than those
  /// of TCP are `localhost`.
  public var authority: String {
    switch self.scheme {
    case .unix, .unixAbstract, .vsock:
      return "localhost"
    case .http, .https:
      let host = self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]" : self.host
      return self.port == self.scheme.defaultPort ? host : "\(host):\(self.port)"
    }
  }

  /// What settings call the host: ``host``, except for sockets whose name or number could be that of a host. They are the
  /// whole origin, such as `vsock:3:50051`.
  package var hostInSettings: String {
    switch self.scheme {
    case .http, .https, .unix: self.host
    case .unixAbstract, .vsock: self.description
    }
  }
}

extension Origin: CustomStringConvertible {
  public var description: String {
    switch self.scheme {
    case .unix, .unixAbstract: "\(self.scheme.rawValue):\(self.host)"
    case .vsock: "vsock:\(self.host):\(self.port)"
    case .http, .https: "\(self.scheme.rawValue)://\(self.authority)"
    }
  }
}
