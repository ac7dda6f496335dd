/// The names of `/etc/hosts` (hosts(5)).
package struct HostsFile: Hashable, Sendable {
  private var addresses: [String: [IPAddress]] = [:]

  /// - Parameter text: The content of the file. Lines that cannot be read are skipped, as the C library does.
  package init(parsing text: String = "") {
    for line in ASCII.lines(text, comments: [UInt8(ascii: "#")]) {
      let words = ASCII.words(line)
      guard let address = words.first.flatMap({ IPAddress($0) }) else { continue }
      for name in words.dropFirst() {
        let key = HostAndPort.canonicalName(name)
        if self.addresses[key, default: []].contains(address) { continue }
        self.addresses[key, default: []].append(address)
      }
    }
  }

  /// The addresses of a name in the order of the file; none if the file does not have it.
  package func addresses(of name: String) -> [IPAddress] {
    self.addresses[HostAndPort.canonicalName(name)] ?? []
  }
}
