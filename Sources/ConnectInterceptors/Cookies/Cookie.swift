internal import Connect

/// A cookie in a ``CookieJar``, and which requests it goes with: RFC 6265, section 5.3. Its value appears in no description.
public struct Cookie: Sendable, Hashable {
  /// The name of the cookie. Case matters.
  public let name: String
  /// The value of the cookie, as the server has set it.
  public let value: String
  /// The host that the cookie goes to; also all hosts below it unless ``isHostOnly``. The path of the socket for
  /// `unix:`.
  public let domain: String
  /// Whether the cookie goes only to the host that has set it: there was no `Domain`.
  public let isHostOnly: Bool
  /// The path that requests have, or begin with up to a slash.
  public let path: String
  /// Whether the cookie goes only over TLS, or to a Unix domain socket.
  public let isSecure: Bool
  /// When the cookie expires, as time since 1970-01-01 00:00 UTC. Nil if it lasts as long as the jar.
  public let expiry: Duration?

  /// A cookie that the response to a request sets.
  ///
  /// - Returns: Nil if the server may not set it.
  init?(_ cookie: SetCookie, from url: RequestURL) {
    let origin = CookieOrigin(url)
    if cookie.isSecure, !origin.isSecure { return nil }
    self.name = cookie.name
    self.value = cookie.value
    self.isSecure = cookie.isSecure
    self.expiry = cookie.expiry
    switch cookie.domain {
    case nil:
      (self.domain, self.isHostOnly) = (origin.host, true)
    case origin.name?:
      (self.domain, self.isHostOnly) = (origin.host, !origin.mayShare(origin.name))
    case let domain?:
      guard origin.mayShare(domain) else { return nil }
      (self.domain, self.isHostOnly) = (domain, false)
    }
    self.path = cookie.path ?? Self.defaultPath(url.path)
    // https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis-20#section-4.1.3
    let prefix = self.name.prefix(9).lowercased()
    if prefix.hasPrefix("__host-") {
      guard self.isSecure, cookie.domain == nil, cookie.path == "/" else { return nil }
    } else if prefix == "__secure-" {
      guard self.isSecure else { return nil }
    }
  }

  /// RFC 6265, section 5.1.4.
  static func defaultPath(_ path: String) -> String {
    guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      return "/"
    }
    return String(path[..<slash])
  }

  /// Whether the cookie goes with a request, unless it has expired: RFC 6265, section 5.4.
  func matches(_ origin: CookieOrigin, path: String) -> Bool {
    (!self.isHostOnly || self.domain == origin.host) && (!self.isSecure || origin.isSecure)
      && Self.matches(path, self.path)
  }

  func isExpired(at now: Duration) -> Bool { self.expiry.map { $0 <= now } ?? false }

  /// Whether both are the same cookie, whatever their values: the later one replaces the earlier one.
  func replaces(_ other: Cookie) -> Bool {
    self.name == other.name && self.path == other.path && self.isHostOnly == other.isHostOnly
      && self.domain == other.domain
  }

  /// Whether a path has a cookie's path: RFC 6265, section 5.1.4.
  static func matches(_ path: String, _ cookiePath: String) -> Bool {
    let (path, cookiePath) = (path.utf8, cookiePath.utf8)
    guard path.starts(with: cookiePath) else { return false }
    return path.count == cookiePath.count || cookiePath.last == UInt8(ascii: "/")
      || path.dropFirst(cookiePath.count).first == UInt8(ascii: "/")
  }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "Cookie(\(self.name) of \(self.domain)\(self.path))" }
  public var debugDescription: String { self.description }
  public var customMirror: Mirror {
    Mirror(self, children: ["name": self.name, "domain": self.domain, "path": self.path])
  }
}
