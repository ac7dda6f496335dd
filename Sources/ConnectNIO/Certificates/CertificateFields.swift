package import ConnectChannels

/// What is in a certificate (RFC 5280, section 4).
package struct CertificateFields: Sendable {
  package private(set) var subject: CertificateName
  package private(set) var issuer: CertificateName
  /// Whether the signature is over a hash that can be forged: MD5 or SHA-1.
  let isWeaklySigned: Bool
  /// 1 to 3. Only the certificates of version 3 have extensions.
  private(set) var version = 1
  /// From the basic constraints: whether it is a certificate authority's; nil without basic constraints.
  private(set) var isAuthority: Bool?
  /// Whether the key usage, if there is one, allows to sign certificates (keyCertSign).
  private(set) var maySignCertificates = true
  /// Whether there is a key usage that allows to sign certificates or revocation lists (keyCertSign, cRLSign).
  private(set) var claimsToSign = false
  /// Whether the extended key usage, if there is one, allows to be a TLS server.
  package private(set) var mayBeServer = true
  /// The subject alternative names.
  package private(set) var names = PresentedIdentifiers()

  /// Whether subject and issuer are the same, as in self-signed certificates.
  package var isSelfIssued: Bool { self.subject == self.issuer }

  /// Whether it is a certificate authority's. Without basic constraints it is not (RFC 5280, section 4.2.1.9), except
  /// for old roots: version 1 has no extensions.
  var isOfAuthority: Bool { self.isAuthority ?? (self.version == 1 && self.isSelfIssued) }

  /// Whether the servers whose certificates it has signed may be trusted because of it.
  var vouchesForServers: Bool { self.isOfAuthority && self.maySignCertificates && self.mayBeServer }

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
      var signature = fields.enter(DERReader.sequence),
      let algorithm = signature.next(DERReader.objectIdentifier),
      let issuer = fields.enter(DERReader.sequence).flatMap({ CertificateName($0) }),
      fields.next(DERReader.sequence) != nil,
      let subject = fields.enter(DERReader.sequence).flatMap({ CertificateName($0) })
    else { return nil }
    self.isWeaklySigned = Self.weakSignatures.contains(Array(algorithm))
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
      let usage = bits.dropFirst().first ?? 0
      self.maySignCertificates = usage & 0x04 != 0
      self.claimsToSign = usage & 0x06 != 0
    case [0x55, 0x1d, 0x11]:
      guard var names = value.enter(DERReader.sequence) else { return false }
      while names.nextTag != nil {
        guard let name = names.next() else { return false }
        switch name.tag {
        case DERReader.dnsName: self.names.dnsNames.append(Array(name.content))
        case DERReader.ipAddress: self.names.addresses.append(Array(name.content))
        case DERReader.uri: self.names.uris.append(Array(name.content))
        default: break
        }
      }
    case [0x55, 0x1d, 0x13]:
      guard var constraints = value.enter(DERReader.sequence) else { return false }
      self.isAuthority = constraints.next(DERReader.boolean)?.first.map { $0 != 0 } ?? false
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

  /// MD2, MD5 and SHA-1 with RSA, in two forms; DSA and ECDSA with SHA-1.
  private static let weakSignatures: [[UInt8]] = [
    [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x02],
    [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04],
    [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], [0x2b, 0x0e, 0x03, 0x02, 0x1d],
    [0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x03], [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01],
  ]

  /// serverAuth and anyExtendedKeyUsage.
  private static let serverPurposes: [[UInt8]] = [
    [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01], [0x55, 0x1d, 0x25, 0x00],
  ]
}
