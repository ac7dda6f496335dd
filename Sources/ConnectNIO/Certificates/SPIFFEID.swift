package import ConnectChannels

/// The name of a workload, `spiffe://trust-domain/path` (the SPIFFE standard "SPIFFE Identity and Verifiable Identity
/// Document", section 2). All of it is case-sensitive, and nothing is decoded.
package struct SPIFFEID: Hashable, Sendable {
  /// In bytes (section 2.3).
  private static let (longestID, longestDomain) = (2048, 255)
  private static let scheme = "spiffe://"

  package let trustDomain: String
  /// With the slash at its beginning; empty for the ID of the trust domain itself.
  package let path: String

  package init(_ text: String) throws(HostProblem) {
    guard text.utf8.count <= Self.longestID else {
      throw HostProblem(text: "it has more than \(Self.longestID) bytes")
    }
    guard text.hasPrefix(Self.scheme) else {
      throw HostProblem(text: "it does not begin with \(Self.scheme)")
    }
    let rest = text.dropFirst(Self.scheme.count)
    let domain = rest.prefix { $0 != "/" }
    try Self.check(trustDomain: domain)
    self.trustDomain = String(domain)
    self.path = String(rest.dropFirst(domain.count))
    guard !self.path.isEmpty else { return }
    for segment in self.path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
      guard !segment.isEmpty, segment != ".", segment != ".." else {
        throw HostProblem(text: "its path has an empty segment, or one that is . or ..")
      }
      guard segment.utf8.allSatisfy({ Self.isLetter($0) || Self.isCapital($0) || Self.isOther($0) }) else {
        throw HostProblem(text: "its path has other characters than letters, digits, '.', '-' and '_'")
      }
    }
  }

  /// - Parameter text: A trust domain by itself, for example `prod.example`.
  package static func check(trustDomain text: some StringProtocol) throws(HostProblem) {
    guard !text.isEmpty, text.utf8.count <= self.longestDomain else {
      throw HostProblem(text: "its trust domain has to have 1 to \(self.longestDomain) bytes")
    }
    guard text.utf8.allSatisfy({ self.isLetter($0) || self.isOther($0) }) else {
      throw HostProblem(
        text: "its trust domain has other characters than small letters, digits, '.', '-' and '_'"
      )
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }

  private static func isCapital(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }

  private static func isOther(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._".utf8.contains(byte)
  }
}

extension SPIFFEID: CustomStringConvertible {
  package var description: String { "\(Self.scheme)\(self.trustDomain)\(self.path)" }
}

extension CertificateFields {
  /// The SPIFFE ID of a workload; nil for certificates without one, for those that may sign others, and for the ID of a trust
  /// domain itself (the SPIFFE standard "X.509-SVID", section 5.2).
  var workloadID: SPIFFEID? {
    guard !self.isOfAuthority, !self.claimsToSign, let id = self.names.spiffeID, !id.path.isEmpty else {
      return nil
    }
    return id
  }
}

extension PresentedIdentifiers {
  /// The SPIFFE ID of a certificate; nil if it has none. A certificate with several URIs has none (the SPIFFE standard
  /// "X.509-SVID", section 2).
  package var spiffeID: SPIFFEID? {
    guard self.uris.count == 1 else { return nil }
    return try? SPIFFEID(String(decoding: self.uris[0], as: UTF8.self))
  }
}
