internal import Connect

/// What a server's certificate has to name: the reference identifier of RFC 9525, section 6.1.
///
/// It comes from the origin or from settings, never from the address of a socket: that may be a proxy's, or what
/// somebody has made a name resolve to.
package enum ReferenceIdentifier: Hashable, Sendable {
  /// A DNS name: ASCII in lower case, without the dot at its end.
  case name(String)
  /// An IP address. It has no zone, which means something on this machine only.
  case address(IPAddress)

  /// The longest name and the longest label, in bytes (RFC 1035, section 2.3.4).
  private static let (longestName, longestLabel) = (253, 63)

  /// - Parameter text: A host name in ASCII, an IPv4 address, or an IPv6 address with or without brackets. The case of
  ///   letters and a dot at the end do not count.
  package init(_ text: String) throws(HostProblem) {
    let bytes = Array(text.utf8)
    if bytes.first == UInt8(ascii: "[") {
      guard bytes.last == UInt8(ascii: "]"), let address = IPAddress(text.dropFirst().dropLast()),
        address.family == .v6
      else { throw HostProblem(text: "the brackets have to enclose an IPv6 address, as in [::1]") }
      self = .address(address.withoutZone)
      return
    }
    let name = String(
      decoding: bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes[...],
      as: UTF8.self
    )
    if let address = IPAddress(name) {
      self = .address(address.withoutZone)
    } else {
      try Self.check(name)
      self = .name(String(decoding: name.utf8.map(ASCII.lowercased), as: UTF8.self))
    }
  }

  private static func check(_ name: String) throws(HostProblem) {
    let bytes = Array(name.utf8)
    guard !bytes.isEmpty else { throw HostProblem(text: "there is no name") }
    guard bytes.allSatisfy({ $0 < 0x80 }) else {
      throw HostProblem(text: "it is not ASCII; write it in Punycode (xn--…)")
    }
    guard bytes.allSatisfy(PercentEncoding.isUnreserved) else {
      throw HostProblem(
        text:
          "it has a character that no host name has; write the name alone, without a scheme, port or wildcard"
      )
    }
    guard bytes.count <= self.longestName else {
      throw HostProblem(text: "it has \(bytes.count) characters; a name has at most \(self.longestName)")
    }
    let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard labels.allSatisfy({ (1...self.longestLabel).contains($0.count) }) else {
      throw HostProblem(text: "between its dots have to be 1 to \(self.longestLabel) characters")
    }
    // Programs read such texts as different addresses, or as none.
    guard !labels.allSatisfy(self.isNumber) else {
      throw HostProblem(
        text:
          "it is neither a name nor an IPv4 address, which is four decimal numbers up to 255, as in 192.0.2.1"
      )
    }
  }

  private static func isNumber(_ label: ArraySlice<UInt8>) -> Bool {
    if label.count > 2, label.starts(with: "0x".utf8) || label.starts(with: "0X".utf8) {
      return label.dropFirst(2).allSatisfy { PercentEncoding.value($0) != nil }
    }
    return label.allSatisfy { ASCII.digit($0) != nil }
  }

  /// What the server is asked for in the TLS handshake; nil for an address (RFC 6066, section 3).
  package var serverNameIndication: String? {
    switch self {
    case .name(let name): name
    case .address: nil
    }
  }
}

extension ReferenceIdentifier: CustomStringConvertible {
  /// The name, or the address without brackets.
  package var description: String {
    switch self {
    case .name(let name): name
    case .address(let address): address.description
    }
  }
}

// MARK: - Matching

extension ReferenceIdentifier {
  /// Whether a certificate with these subject alternative names is one for this server (RFC 9525, section 6). The common
  /// name of a subject does not count.
  package func matches(_ presented: PresentedIdentifiers) -> Bool {
    switch self {
    case .name(let name):
      let name = Array(name.utf8)
      return presented.dnsNames.contains { Self.matches($0, name[...]) }
    case .address(let address):
      let octets = address.bytes
      return presented.addresses.contains(octets)
    }
  }

  /// RFC 9525, section 6.3.
  private static func matches(_ pattern: [UInt8], _ name: ArraySlice<UInt8>) -> Bool {
    guard pattern.starts(with: "*.".utf8) else { return self.isEqual(pattern[...], name) }
    // A wildcard is the whole first label, and stands for one label. What is behind it has to have two labels at least:
    // nobody owns a whole top-level domain.
    guard let dot = name.firstIndex(of: UInt8(ascii: ".")) else { return false }
    let parent = name[(dot + 1)...]
    return parent.contains(UInt8(ascii: ".")) && self.isEqual(pattern.dropFirst(2), parent)
  }

  /// - Parameter name: In lower case.
  private static func isEqual(_ pattern: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> Bool {
    pattern.count == name.count && zip(pattern, name).allSatisfy { ASCII.lowercased($0) == $1 }
  }
}
