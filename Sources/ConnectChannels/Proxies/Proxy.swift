/// A proxy that tunnels connections. The proxy resolves the names of servers.
public enum Proxy: Hashable, Sendable {
  /// `CONNECT` of HTTP (RFC 9110, section 9.3.6).
  case httpConnect(host: String, port: Int, credentials: Credentials?)
  /// SOCKS version 5 (RFC 1928).
  case socks5(host: String, port: Int, credentials: Credentials?)

  /// A user's name and password. Descriptions never show the password.
  public struct Credentials: Hashable, Sendable {
    /// The name that the proxy knows the user by. For HTTP it has no colon (RFC 7617).
    public var user: String
    /// The password in clear text; empty for none. For SOCKS 5 user and password have 1 to 255 bytes each (RFC 1929).
    public var password: String

    /// A name and a password, not escaped.
    public init(user: String, password: String) {
      self.user = user
      self.password = password
    }
  }

  /// Where the proxy listens.
  public var address: HostAndPort {
    switch self {
    case .httpConnect(let host, let port, _), .socks5(let host, let port, _):
      HostAndPort(host: host, port: port)
    }
  }

  /// What the client tells the proxy about its user; nil if the proxy asks for nothing.
  public var credentials: Credentials? {
    switch self {
    case .httpConnect(_, _, let credentials), .socks5(_, _, let credentials): credentials
    }
  }
}

extension Proxy.Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "\(self.user):***" }
  public var debugDescription: String { self.description }
  public var customMirror: Mirror { Mirror(self, children: ["user": self.user]) }
}

extension Proxy: CustomStringConvertible, CustomDebugStringConvertible {
  /// The proxy as a URL without its password.
  public var description: String {
    let scheme =
      switch self {
      case .httpConnect: "http"
      case .socks5: "socks5"
      }
    return "\(scheme)://\(self.credentials.map { "\($0)@" } ?? "")\(self.address)"
  }

  public var debugDescription: String { self.description }
}

// MARK: - Parsing

extension Proxy {
  /// Parses `http://user:password@host:port`, `socks5://…` and `socks5h://…`.
  ///
  /// Without a scheme it is an HTTP proxy. The port is 80 for HTTP and 1080 for SOCKS by default. User and
  /// password may have escapes (`%40` for `@`). A path is ignored. `socks5` is the same as `socks5h`: the proxy
  /// resolves names.
  ///
  /// - Throws: ``ProxyError``, which says what to write, without the password.
  public init(_ text: String) throws(ProxyError) {
    let text = ASCII.trimmed(text)
    var rest = text[...]
    var scheme = "http"
    if let end = text.firstRange(of: "://") {
      scheme = text[..<end.lowerBound].lowercased()
      rest = text[end.upperBound...]
    }
    let isSOCKS: Bool
    switch scheme {
    case "http": isSOCKS = false
    case "socks5", "socks5h": isSOCKS = true
    case "https":
      throw .invalidURL(
        "TLS to a proxy is not supported; if the proxy takes plain HTTP, write http://HOST:PORT"
      )
    default:
      throw .invalidURL(
        "the scheme \"\(scheme)\" is not supported; write http://HOST:PORT or socks5://HOST:PORT"
      )
    }
    // The last @: a password may have one that is not escaped.
    let authorityEnd = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
    let authority = rest[..<authorityEnd]
    if rest[authorityEnd...].utf8.contains(UInt8(ascii: "@")) {
      // The parts of such a text are not shown: the password may be among them.
      throw .invalidURL("user or password have one of / ? #; write / as %2F, ? as %3F, # as %23")
    }
    let at = authority.utf8.lastIndex(of: UInt8(ascii: "@"))
    let credentials = try at.map { at throws(ProxyError) in try Self.credentials(authority[..<at]) }
    let hostText = at.map { authority[authority.utf8.index(after: $0)...] } ?? authority
    let address: HostAndPort
    do throws(HostProblem) {
      address = try HostAndPort(parsing: hostText, defaultPort: isSOCKS ? 1_080 : 80)
    } catch {
      throw .invalidURL(error.text)
    }
    self =
      isSOCKS
      ? .socks5(host: address.host, port: address.port, credentials: credentials)
      : .httpConnect(host: address.host, port: address.port, credentials: credentials)
    try self.check(credentials)
  }

  private static func credentials(_ text: Substring) throws(ProxyError) -> Credentials {
    let parts = text.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    let user = parts.first.flatMap { ASCII.percentDecoded(Substring($0)) }
    let password = parts.count == 2 ? ASCII.percentDecoded(Substring(parts[1])) : ""
    guard let user, let password else {
      throw .invalidURL(
        "user or password have a % that begins no escape of UTF-8; write % as %25, @ as %40, / as %2F"
      )
    }
    return Credentials(user: user, password: password)
  }

  /// Checks a proxy that does not come from a URL.
  package func check() throws(ProxyError) {
    do throws(HostProblem) {
      _ = try HostAndPort(parsing: self.address.description, defaultPort: nil)
    } catch {
      throw .invalidURL(error.text)
    }
    try self.check(self.credentials)
  }

  /// Checks that the proxy's protocol can carry the credentials.
  func check(_ credentials: Credentials?) throws(ProxyError) {
    guard let credentials else { return }
    switch self {
    case .httpConnect:
      if credentials.user.utf8.contains(UInt8(ascii: ":")) {
        throw .invalidURL("the user's name has a colon, which Basic credentials cannot carry (RFC 7617)")
      }
    case .socks5:
      let lengths = 1...255
      guard lengths.contains(credentials.user.utf8.count), lengths.contains(credentials.password.utf8.count)
      else {
        throw .invalidURL("user and password have to be 1 to 255 bytes long for SOCKS5 (RFC 1929)")
      }
    }
  }
}
