import ConnectNIO
import Foundation
import NIOCore
import NIOSSL

/// The certificates that a server has shown, its own first, and what is wrong with them.
struct CertificateChain {
  let certificates: [NIOSSLCertificate]
  /// What the server is called: a DNS name or an IP address.
  let name: String
  /// The trusted certificates; nil if they are not known.
  let anchors: TrustAnchors?
  /// Whether calls are made even with certificates that are not valid.
  let isInsecure: Bool

  private static let dayLength = 86_400
  /// A certificate that ends in fewer days should be renewed.
  private static let shortestRest = 14

  var findings: [Finding] {
    guard let own = self.certificates.first else {
      return [Finding(subject: "certificate", verdict: self.fault, text: "the server has shown none")]
    }
    let members = self.certificates.enumerated().map { self.finding(of: $1, isOwn: $0 == 0) }
    return members + [self.nameFinding(own), self.trustFinding(own)].compactMap { $0 }
  }

  private var fault: Finding.Verdict { self.isInsecure ? .absent : .broken }

  // MARK: Each certificate

  private func finding(of certificate: NIOSSLCertificate, isOwn: Bool) -> Finding {
    let subject = isOwn ? "certificate" : "issuer"
    guard let fields = Self.fields(certificate) else {
      return Finding(subject: subject, verdict: self.fault, text: "cannot be read")
    }
    let issuer = fields.isSelfIssued ? "self-signed" : "issued by '\(fields.issuer)'"
    let dates = "valid from \(Self.day(certificate.notValidBefore)) to \(Self.day(certificate.notValidAfter))"
    let names = isOwn ? CertificateNames.text(certificate).map { ", for \($0)" } ?? ", for no name" : ""
    var finding = Finding(
      subject: subject,
      verdict: .works,
      text: "'\(fields.subject)', \(issuer), \(dates)\(names)"
    )
    switch certificate.validity {
    case .valid:
      let days = (Int(certificate.notValidAfter) - Int(time(nil))) / Self.dayLength
      if days < Self.shortestRest { finding.advice = "it ends in \(days) days: renew it soon" }
    case .expired:
      finding = self.faulty(finding, "it has expired: renew it, or set the clock of this machine")
    case .notYetValid:
      finding = self.faulty(finding, "it is not valid yet: set the clock of this machine, or wait")
    }
    return finding
  }

  private func faulty(_ finding: Finding, _ advice: String) -> Finding {
    Finding(subject: finding.subject, verdict: self.fault, text: finding.text, advice: advice)
  }

  // MARK: The name

  private func nameFinding(_ own: NIOSSLCertificate) -> Finding? {
    guard !self.hasName(own) else { return nil }
    let names = CertificateNames.text(own).map { "but for \($0)" } ?? "and for no other: it has none"
    return Finding(
      subject: "server name",
      verdict: self.fault,
      text: "the certificate is not for '\(self.name)', \(names)",
      advice: "call the server by such a name, give --servername, or get a certificate for this name"
    )
  }

  private func hasName(_ own: NIOSSLCertificate) -> Bool {
    let name = self.name.filter { $0 != "[" && $0 != "]" }
    guard let address = try? SocketAddress(ipAddress: name, port: 0) else {
      return CertificateNames.has(own, name: name)
    }
    return CertificateNames.has(own, address: Self.bytes(of: address))
  }

  /// In network byte order.
  private static func bytes(of address: SocketAddress) -> [UInt8] {
    switch address {
    case .v4(let address): withUnsafeBytes(of: address.address.sin_addr) { Array($0) }
    case .v6(let address): withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
    case .unixDomainSocket: []
    }
  }

  // MARK: Trust

  /// Follows issuers from the server's own certificate until one is trusted. Signatures are left to the calls that follow.
  private func trustFinding(_ own: NIOSSLCertificate) -> Finding? {
    guard let anchors = self.anchors, var fields = Self.fields(own) else { return nil }
    var certificate = own
    var rest = Array(self.certificates.dropFirst())
    while true {
      if let anchor = anchors.anchor(equalTo: certificate) {
        return Finding(subject: "trust", verdict: .works, text: "'\(anchor.fields.subject)' is trusted")
      }
      if let anchor = anchors.all.first(where: { $0.fields.subject == fields.issuer && !fields.isSelfIssued })
      {
        return self.finding(of: anchor)
      }
      if fields.isSelfIssued {
        return self.untrusted(
          "'\(fields.subject)' is self-signed, and not trusted",
          "if it is really the server's, trust it with --cacert"
        )
      }
      let issuers = rest.indices.filter { Self.fields(rest[$0])?.subject == fields.issuer }
      guard let index = issuers.first, let issuer = Self.fields(rest[index]) else {
        return self.untrusted(
          "the certificate of '\(fields.issuer)', which has issued '\(fields.subject)', is missing",
          "let the server send it behind its own, or, if it is a root, trust it with --cacert"
        )
      }
      certificate = rest.remove(at: index)
      fields = issuer
    }
  }

  private func finding(of anchor: TrustAnchors.Anchor) -> Finding {
    guard anchor.certificate.validity == .valid else {
      return self.untrusted(
        "the trusted '\(anchor.fields.subject)' is valid from \(Self.day(anchor.certificate.notValidBefore)) to "
          + Self.day(anchor.certificate.notValidAfter),
        "update the certificates of this machine, or the file of --cacert"
      )
    }
    return Finding(
      subject: "trust",
      verdict: .works,
      text: "the chain leads to '\(anchor.fields.subject)', which is trusted"
    )
  }

  private func untrusted(_ text: String, _ advice: String) -> Finding {
    Finding(subject: "trust", verdict: self.fault, text: text, advice: advice)
  }

  // MARK: Fields

  private static func fields(_ certificate: NIOSSLCertificate) -> CertificateFields? {
    (try? certificate.toDERBytes()).flatMap { CertificateFields(der: $0) }
  }

  private static func day(_ seconds: time_t) -> String {
    Date(timeIntervalSince1970: TimeInterval(seconds)).formatted(.iso8601.year().month().day())
  }
}
