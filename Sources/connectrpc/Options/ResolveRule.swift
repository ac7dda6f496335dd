import ConnectChannels

/// A rule of `--resolve`: the addresses of a name.
struct ResolveRule {
  private let name: String
  let addresses: [EndpointAddress]

  /// - Parameters:
  ///   - text: `NAME=ADDRESS,ADDRESS`.
  ///   - port: The port of addresses that have none.
  init(_ text: String, port: Int) throws {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let addresses =
      parts.count == 2 ? parts[1].split(separator: ",").map(\.withoutBlanks).filter { !$0.isEmpty } : []
    guard let name = parts.first?.withoutBlanks, !name.isEmpty, !addresses.isEmpty else {
      throw Failure.usage("--resolve \(text): say NAME=ADDRESS,ADDRESS")
    }
    self.name = Self.comparable(name)
    self.addresses = try addresses.map { address in
      guard let known = EndpointAddress(address) ?? EndpointAddress("\(address):\(port)") else {
        throw Failure.usage("--resolve \(text): \(address) is no address; say 10.0.0.1:443 or [::1]:443")
      }
      return known
    }
  }

  func applies(to name: ServerName) -> Bool { self.name == Self.comparable(name.name) }

  /// Names differ neither in case nor in the dot of the root.
  private static func comparable(_ name: String) -> String {
    (name.hasSuffix(".") ? String(name.dropLast()) : name).lowercased()
  }
}
