internal import NIOCore
package import NIOSSL

/// Compares a host's name with the names in a certificate (RFC 9525, section 6.3).
///
/// NIOSSL does that, too, but it also accepts a certificate for the peer's IP address when a name was asked for. An
/// attacker who makes a name resolve to his own address, and has a certificate for this address, would be believed.
package enum CertificateNames {
  /// Whether NIOSSL may have accepted `certificate` for another reason than that it has the name `host`.
  static func isDoubtful(_ certificate: NIOSSLCertificate, for host: String) -> Bool {
    var hasAddress = false
    for name in certificate._subjectAlternativeNames() {
      switch name.nameType {
      case .dnsName:
        if Self.matches(String(decoding: name.contents, as: UTF8.self), host: host) { return false }
      case .ipAddress:
        hasAddress = true
      default:
        break
      }
    }
    return hasAddress
  }

  /// Whether `certificate` has the DNS name `name`, in its subject alternative names.
  package static func has(_ certificate: NIOSSLCertificate, name: String) -> Bool {
    certificate._subjectAlternativeNames().contains { alternative in
      alternative.nameType == .dnsName
        && self.matches(String(decoding: alternative.contents, as: UTF8.self), host: name)
    }
  }

  /// Whether `certificate` has this IP address, in network byte order, in its subject alternative names.
  package static func has(_ certificate: NIOSSLCertificate, address: [UInt8]) -> Bool {
    certificate._subjectAlternativeNames().contains { alternative in
      alternative.nameType == .ipAddress && alternative.contents.elementsEqual(address)
    }
  }

  /// Whether a certificate's DNS name, which may begin with `*.`, is one for `host`.
  static func matches(_ pattern: String, host: String) -> Bool {
    let pattern = Self.labels(pattern)
    let host = Self.labels(host)
    guard pattern.count == host.count, let first = pattern.first else { return false }
    // A wildcard stands for one label, and not directly below a top-level domain.
    if first == "*", pattern.count > 2 { return pattern.dropFirst() == host.dropFirst() }
    return pattern == host
  }

  /// The names of a certificate as text, for example `localhost, 127.0.0.1`; nil if there are none.
  package static func text(_ certificate: NIOSSLCertificate) -> String? {
    let names = certificate._subjectAlternativeNames().compactMap { name -> String? in
      switch name.nameType {
      case .dnsName:
        CertificateName.readable(String(decoding: name.contents, as: UTF8.self))
      case .ipAddress:
        try? SocketAddress(packedIPAddress: ByteBuffer(bytes: name.contents), port: 0).ipAddress
      default:
        nil
      }
    }
    guard !names.isEmpty else { return nil }
    let shown = names.prefix(10).joined(separator: ", ")
    return names.count > 10 ? "\(shown) and \(names.count - 10) more" : shown
  }

  private static func labels(_ name: String) -> [String] {
    let name = name.hasSuffix(".") ? String(name.dropLast()) : name
    return name.lowercased().split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }
}
