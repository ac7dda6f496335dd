/// What NIOSSL does not tell about a certificate (RFC 5280, section 4).
package struct CertificateFields: Sendable {
  package private(set) var subject: CertificateName
  package private(set) var issuer: CertificateName
  /// 1 to 3. Only the certificates of version 3 have extensions.
  private(set) var version = 1
  /// From the basic constraints: whether it is a certificate authority's; nil without basic constraints.
  private(set) var isAuthority: Bool?
  /// Whether the key usage, if there is one, allows to sign certificates (keyCertSign).
  private(set) var maySignCertificates = true
  /// Whether the extended key usage, if there is one, allows to be a TLS server.
  package private(set) var mayBeServer = true
  private(set) var hasPolicyConstraints = false

  /// Whether subject and issuer are the same, as in self-signed certificates.
  package var isSelfIssued: Bool { self.subject == self.issuer }

  /// Whether it is a certificate authority's. Without basic constraints it is not (RFC 5280, section 4.2.1.9), except
  /// for old roots: version 1 has no extensions.
  var isOfAuthority: Bool { self.isAuthority ?? (self.version == 1 && self.isSelfIssued) }

  /// Nil if the bytes are not those of a certificate.
  package init?(der: [UInt8]) {
    var outer = DERReader(der[...])
    guard var certificate = outer.enter(DERReader.sequence),
      var fields = certificate.enter(DERReader.sequence)
    else { return nil }
    if fields.nextTag == DERReader.context(0) {
      guard var explicit = fields.enter(DERReader.context(0)), let version = explicit.next(DERReader.integer),
        version.count == 1, let number = version.first
      else { return nil }
      self.version = Int(number) + 1
    }
    guard fields.next(DERReader.integer) != nil,
      fields.next(DERReader.sequence) != nil,
      let issuer = fields.enter(DERReader.sequence).flatMap({ CertificateName($0) }),
      fields.next(DERReader.sequence) != nil,
      let subject = fields.enter(DERReader.sequence).flatMap({ CertificateName($0) })
    else { return nil }
    self.issuer = issuer
    self.subject = subject
    while let tag = fields.nextTag {
      guard tag == DERReader.context(3) else {
        guard fields.next() != nil else { return nil }
        continue
      }
      guard var explicit = fields.enter(tag), var extensions = explicit.enter(DERReader.sequence) else {
        return nil
      }
      while extensions.nextTag != nil {
        guard let element = extensions.enter(DERReader.sequence), self.read(extension: element) else {
          return nil
        }
      }
    }
  }

  /// Returns whether it could be read.
  private mutating func read(extension element: DERReader) -> Bool {
    var element = element
    guard let identifier = element.next(DERReader.objectIdentifier) else { return false }
    // Whether it is critical.
    _ = element.next(DERReader.boolean)
    guard let content = element.next(DERReader.octetString) else { return false }
    var value = DERReader(content)
    switch Array(identifier) {
    case [0x55, 0x1d, 0x0f]:
      // The first byte tells how many bits are not used.
      guard let bits = value.next(DERReader.bitString) else { return false }
      self.maySignCertificates = bits.dropFirst().first.map { $0 & 0x04 != 0 } ?? false
    case [0x55, 0x1d, 0x13]:
      guard var constraints = value.enter(DERReader.sequence) else { return false }
      self.isAuthority = constraints.next(DERReader.boolean)?.first.map { $0 != 0 } ?? false
    case [0x55, 0x1d, 0x24]:
      self.hasPolicyConstraints = true
    case [0x55, 0x1d, 0x25]:
      guard var purposes = value.enter(DERReader.sequence) else { return false }
      self.mayBeServer = false
      while let purpose = purposes.next(DERReader.objectIdentifier) {
        if Self.serverPurposes.contains(Array(purpose)) { self.mayBeServer = true }
      }
    default:
      break
    }
    return true
  }

  /// serverAuth and anyExtendedKeyUsage.
  private static let serverPurposes: [[UInt8]] = [
    [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01], [0x55, 0x1d, 0x25, 0x00],
  ]
}
