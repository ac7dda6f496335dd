/// Which DNS servers to ask, and how: `/etc/resolv.conf` (resolv.conf(5)).
///
/// Limits and defaults are those of the C library.
public struct ResolverConfiguration: Hashable, Sendable {
  /// The name servers in the order of preference. Only the first three of a file count.
  public var servers: [EndpointAddress]
  /// Domains that are tried behind a short name.
  public var searchDomains: [String]
  /// A name with at least this many dots is tried as it is before the search list: 0 to 15.
  public var dots: Int
  /// How long one query to one server may take: 1 s to 30 s.
  public var timeout: Duration
  /// How often each server is asked: 1 to 5.
  public var attempts: Int
  /// Whether each lookup begins with another server.
  public var rotatesServers: Bool
  /// Whether all queries go over TCP (`options use-vc`).
  public var usesTCP: Bool

  /// A configuration that is given by a program. Values are used as they are.
  public init(
    servers: [EndpointAddress],
    searchDomains: [String] = [],
    dots: Int = 1,
    timeout: Duration = .seconds(5),
    attempts: Int = 2,
    rotatesServers: Bool = false,
    usesTCP: Bool = false
  ) {
    self.servers = servers
    self.searchDomains = searchDomains
    self.dots = dots
    self.timeout = timeout
    self.attempts = attempts
    self.rotatesServers = rotatesServers
    self.usesTCP = usesTCP
  }

  private static let maximumServers = 3

  /// The configuration of a file in the format of resolv.conf(5).
  ///
  /// - Parameters:
  ///   - text: The content of `/etc/resolv.conf`. What cannot be read is skipped, as the C library does.
  ///   - hostname: The name of this machine. Its domain is the search list if the file has none.
  public init(parsing text: String, hostname: String? = nil) {
    self.init(servers: [])
    var search: [String]?
    for line in ASCII.lines(text, comments: [UInt8(ascii: "#"), UInt8(ascii: ";")]) {
      let words = ASCII.words(line)
      let values = words.dropFirst()
      switch words.first {
      case "nameserver":
        guard self.servers.count < Self.maximumServers, let address = values.first.flatMap({ IPAddress($0) })
        else { continue }
        self.servers.append(.ip(address, port: 53))
      case "domain":
        // Of `domain` and `search` the last one counts.
        search = values.first.map { [$0] } ?? search
      case "search":
        search = Array(values)
      case "options":
        for option in values { self.apply(option: option) }
      default:
        continue
      }
    }
    if self.servers.isEmpty { self.servers = [.ip(.loopbackIPv4, port: 53)] }
    if let search {
      self.searchDomains = search.filter { $0 != "." && DNSName($0) != nil }
    } else if let domain = hostname?.split(separator: ".", maxSplits: 1).dropFirst().first,
      DNSName(domain) != nil
    {
      self.searchDomains = [String(domain)]
    }
  }

  private mutating func apply(option: String) {
    let parts = option.split(separator: ":", maxSplits: 1)
    let value = parts.count == 2 ? ASCII.decimal(parts[1].utf8, maximum: .max) : nil
    switch (parts.first, value) {
    case ("ndots", let value?): self.dots = min(value, 15)
    case ("timeout", let value?): self.timeout = .seconds(min(max(value, 1), 30))
    case ("attempts", let value?): self.attempts = min(max(value, 1), 5)
    case ("rotate", nil): self.rotatesServers = true
    case ("use-vc", nil): self.usesTCP = true
    default: break
    }
  }
}

extension ResolverConfiguration {
  /// The names to look up for a name, in order. The first that exists is the answer.
  ///
  /// A name with a dot at its end is only tried as it is. A name with at least ``dots`` dots is tried as it is
  /// first, every other name last.
  ///
  /// - Returns: No names if `name` is no domain name.
  package func candidates(for name: String) -> [DNSName] {
    guard let absolute = DNSName(name) else { return [] }
    if name.utf8.last == UInt8(ascii: ".") { return [absolute] }
    let searched = self.searchDomains.compactMap { DNSName($0).flatMap(absolute.appending) }
    let isLong = absolute.labels.count > self.dots
    var names: [DNSName] = []
    for name in isLong ? [absolute] + searched : searched + [absolute] where !names.contains(name) {
      names.append(name)
    }
    return names
  }
}
