import ConnectChannels
import ConnectNIO
import Foundation

/// The certificates that a server has shown, its own first, and what is wrong with them.
struct CertificateChain {
  let certificates: [Certificate]
  /// What the server is called: a DNS name or an IP address.
  let name: String
  /// The same, as certificates are compared with it; nil if it is neither a name nor an address.
  let identity: ReferenceIdentifier?
  /// The trusted certificates; nil if they are not known.
  let anchors: TrustAnchors?
  /// Whether calls are made even with certificates that are not valid.
  let isInsecure: Bool

  private static let dayLength = 86_400
  /// A certificate that ends in fewer days should be renewed.
  private static let shortestRest = 14

  var findings: [Finding] {
    guard let own = self.certificates.first else {
      return [Finding("certificate", self.fault, "the server has shown none")]
    }
    let members = self.certificates.enumerated().map { self.finding(of: $1, isOwn: $0 == 0) }
    return members + [self.nameFinding(own), self.trustFinding(own)].compactMap { $0 }
  }

  private var fault: Finding.Verdict { self.isInsecure ? .absent : .broken }

  // MARK: Each certificate

  private func finding(of certificate: Certificate, isOwn: Bool) -> Finding {
    let subject = isOwn ? "certificate" : "issuer"
    let fields = certificate.fields
    let issuer = fields.isSelfIssued ? "self-signed" : "issued by '\(fields.issuer)'"
    let dates = "valid from \(Self.day(certificate.notBefore)) to \(Self.day(certificate.notAfter))"
    let names = isOwn ? fields.names.text.map { ", for \($0)" } ?? ", for no name" : ""
    var finding = Finding(subject, .works, "'\(fields.subject)', \(issuer), \(dates)\(names)")
    switch certificate.validity() {
    case .valid:
      let days = (certificate.notAfter - Certificate.now) / Self.dayLength
      if days < Self.shortestRest { finding.advice = "it ends in \(days) days: renew it soon" }
    case .expired where !isOwn && self.isReplaced(certificate):
      finding.advice = "it has expired, and a renewed one is there as well: let the server no longer send it"
    case .expired:
      finding = self.faulty(finding, "it has expired: renew it, or set the clock of this machine")
    case .notYetValid:
      finding = self.faulty(finding, "it is not valid yet: set the clock of this machine, or wait")
    }
    return finding
  }

  /// Whether another certificate with the same name is valid.
  private func isReplaced(_ certificate: Certificate) -> Bool {
    (self.certificates.dropFirst() + (self.anchors?.all ?? [])).contains { other in
      other.isValid && other.fields.subject == certificate.fields.subject
    }
  }

  private func faulty(_ finding: Finding, _ advice: String) -> Finding {
    Finding(finding.subject, self.fault, finding.text, advice: advice)
  }

  // MARK: The name

  private func nameFinding(_ own: Certificate) -> Finding? {
    guard self.identity?.matches(own.fields.names) != true else { return nil }
    let names = own.fields.names.text.map { "but for \($0)" } ?? "and for no other: it has none"
    return Finding(
      "server name",
      self.fault,
      "the certificate is not for '\(self.name)', \(names)",
      advice: "call the server by such a name, give --servername, or get a certificate for this name"
    )
  }

  // MARK: Trust

  /// Follows issuers from the server's own certificate until one is trusted. Signatures are left to the calls that follow.
  private func trustFinding(_ own: Certificate) -> Finding? {
    guard let anchors = self.anchors else { return nil }
    var certificate = own
    var rest = Array(self.certificates.dropFirst())
    while true {
      let fields = certificate.fields
      if let anchor = anchors.anchor(equalTo: certificate) {
        return Finding("trust", .works, "'\(anchor.fields.subject)' is trusted")
      }
      if !fields.isSelfIssued, let index = Self.issuer(of: certificate, in: anchors.all) {
        return self.finding(of: anchors.all[index])
      }
      if fields.isSelfIssued {
        return self.untrusted(
          "'\(fields.subject)' is self-signed, and not trusted",
          "if it is really the server's, trust it with --cacert"
        )
      }
      guard let index = Self.issuer(of: certificate, in: rest) else {
        return self.untrusted(
          "the certificate of '\(fields.issuer)', which has issued '\(fields.subject)', is missing",
          "let the server send it behind its own, or, if it is a root, trust it with --cacert"
        )
      }
      certificate = rest.remove(at: index)
    }
  }

  /// The place of a certificate with the issuer's name, of a valid one if there is any.
  private static func issuer(of certificate: Certificate, in certificates: [Certificate]) -> Int? {
    let issuers = certificates.indices.filter { certificates[$0].fields.subject == certificate.fields.issuer }
    return issuers.first { certificates[$0].isValid } ?? issuers.first
  }

  private func finding(of anchor: Certificate) -> Finding {
    guard anchor.isValid else {
      return self.untrusted(
        "the trusted '\(anchor.fields.subject)' is valid from \(Self.day(anchor.notBefore)) to "
          + Self.day(anchor.notAfter),
        "update the certificates of this machine, or the file of --cacert"
      )
    }
    return Finding("trust", .works, "the chain leads to '\(anchor.fields.subject)', which is trusted")
  }

  private func untrusted(_ text: String, _ advice: String) -> Finding {
    Finding("trust", self.fault, text, advice: advice)
  }

  // MARK: Fields

  private static func day(_ seconds: Int) -> String {
    Date(timeIntervalSince1970: TimeInterval(seconds)).formatted(.iso8601.year().month().day())
  }
}
