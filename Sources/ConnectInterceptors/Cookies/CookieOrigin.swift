internal import Connect

/// Where a request goes, as cookies see it. The port does not count (RFC 6265, section 8.5), nor does the scheme but for
/// ``isSecure``.
struct CookieOrigin {
  /// The host in lower case, or the socket.
  let host: String
  /// What a server calls the host in `Domain`.
  let name: String
  /// Whether nobody on the way can read along. A Unix domain socket counts as secure, a virtual machine does not.
  let isSecure: Bool
  /// Whether the host has a place in a hierarchy of names: it is no address and no socket.
  private let isName: Bool

  init(_ url: RequestURL) {
    let isSocket = !url.origin.scheme.isTCP
    self.host = isSocket ? url.origin.hostInSettings : url.host.lowercased()
    self.name = isSocket ? "localhost" : self.host
    self.isSecure = url.origin.scheme.isPrivate
    self.isName = !isSocket && !Self.isAddress(self.host)
  }

  /// Whether the host may set cookies for all hosts of a domain. It is a part of one, and the domain is not that of all
  /// names below `com`. There is no list of public suffixes here, so `co.uk` may have cookies.
  func mayShare(_ domain: String) -> Bool {
    self.isName && domain.utf8.contains(UInt8(ascii: ".")) && !domain.hasPrefix(".")
      && !domain.hasSuffix(".")
      && (self.host == domain || self.host.hasSuffix(".\(domain)"))
  }

  /// The domains whose cookies may go to the host: the host itself, and what is above it.
  var domains: [String] {
    var domains = [self.host]
    guard self.isName else { return domains }
    var rest = self.host[...]
    while let dot = rest.firstIndex(of: ".") {
      rest = rest[rest.index(after: dot)...]
      domains.append(String(rest))
    }
    return domains
  }

  /// Whether a host is an IP address rather than a name.
  private static func isAddress(_ host: String) -> Bool {
    if host.utf8.contains(UInt8(ascii: ":")) { return true }
    // No top-level domain begins with a digit.
    let last = host.utf8.split(separator: UInt8(ascii: ".")).last
    return last?.first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
  }
}
