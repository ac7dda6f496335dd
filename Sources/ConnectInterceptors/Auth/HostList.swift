internal import Connect

/// The hosts that may receive credentials.
struct HostList: Sendable {
  private var names: [String] = []
  /// Each begins with a dot.
  private var suffixes: [String] = []

  /// All of them, for people.
  var description: String {
    let hosts = self.names + self.suffixes.map { "*\($0)" }
    return hosts.isEmpty ? "no host" : hosts.joined(separator: ", ")
  }

  /// - Parameter hosts: Names, addresses, paths of sockets, and `*.example.com` for all names below.
  init(_ hosts: [String]) {
    for host in hosts {
      // As in a request: names in lower case, IPv6 addresses without brackets, paths and names of sockets as they are.
      let isSocket = host.hasPrefix("/") || host.hasPrefix("unix-abstract:")
      let host = isSocket ? host : host.lowercased().filter { $0 != "[" && $0 != "]" }
      if host.hasPrefix("*.") {
        self.suffixes.append(String(host.dropFirst()))
      } else {
        self.names.append(host)
      }
    }
  }

  /// Whether calls may ask for this authority in place of their server's host.
  func allows(_ authority: String?) -> Bool {
    guard let authority else { return true }
    // What is no host and port is not sent.
    guard let host = (try? Authority(ofCall: authority))?.host else { return false }
    return self.contains(host)
  }

  func contains(_ host: String) -> Bool {
    if self.names.contains(host) { return true }
    // The path or name of a socket is in no domain.
    return !host.utf8.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ":") }
      && self.suffixes.contains { host.utf8.count > $0.utf8.count && host.hasSuffix($0) }
  }
}
