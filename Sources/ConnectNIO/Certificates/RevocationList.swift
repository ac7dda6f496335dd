internal import CNIOBoringSSL
internal import Connect

/// A list of certificates that their authority has taken back (RFC 5280, section 5).
///
/// `@unchecked Sendable`: BoringSSL's object is only read after `init`, which BoringSSL allows on any thread. Its search sorts
/// the entries once, under a lock of its own.
package final class RevocationList: @unchecked Sendable {
  /// The authority's name.
  package let issuer: String
  /// Nil for a list that says of no end.
  package let nextUpdate: Int?
  private let crl: OpaquePointer

  /// Frees the object if it cannot be read.
  private init?(owned crl: OpaquePointer) {
    var nextUpdate = Int64(0)
    var name: UnsafeMutablePointer<UInt8>?
    let count = i2d_X509_NAME(X509_CRL_get_issuer(crl), &name)
    let bytes = name.map { Array(UnsafeBufferPointer(start: $0, count: max(0, Int(count)))) } ?? []
    OPENSSL_free(name)
    var reader = DERReader(bytes[...])
    let update = X509_CRL_get0_nextUpdate(crl)
    guard let issuer = reader.enter(DERReader.sequence).flatMap({ CertificateName($0) }),
      update == nil || ASN1_TIME_to_posix(update, &nextUpdate) == 1
    else {
      X509_CRL_free(crl)
      return nil
    }
    self.crl = crl
    self.issuer = issuer.description
    self.nextUpdate = update == nil ? nil : Int(clamping: nextUpdate)
  }

  deinit {
    X509_CRL_free(self.crl)
  }

  /// The lists in a file, in PEM or DER; nil if there is none, or one that cannot be read. Other blocks of PEM are skipped.
  package static func all(in bytes: [UInt8]) -> [RevocationList]? {
    defer { ERR_clear_error() }
    if bytes.first == DERReader.sequence {
      return bytes.withUnsafeBufferPointer { bytes -> [RevocationList]? in
        var next = bytes.baseAddress
        guard let crl = d2i_X509_CRL(nil, &next, bytes.count) else { return nil }
        guard next == bytes.baseAddress.map({ $0 + bytes.count }) else {
          X509_CRL_free(crl)
          return nil
        }
        return RevocationList(owned: crl).map { [$0] }
      }
    }
    return ByteOrderMark.removed(from: bytes).withUnsafeBytes { bytes -> [RevocationList]? in
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, bytes.count) else { return nil }
      defer { BIO_free(bio) }
      var lists: [RevocationList] = []
      ERR_clear_error()
      while let crl = PEM_read_bio_X509_CRL(bio, nil, nil, nil) {
        guard let list = RevocationList(owned: crl) else { return nil }
        lists.append(list)
      }
      let error = ERR_peek_last_error()
      guard ERR_GET_LIB(error) == ERR_LIB_PEM, ERR_GET_REASON(error) == PEM_R_NO_START_LINE else {
        return nil
      }
      return lists.isEmpty ? nil : lists
    }
  }

  /// Whether the list says that it is this authority's. Who has signed it is another question.
  func names(_ issuer: Certificate) -> Bool {
    X509_NAME_cmp(X509_CRL_get_issuer(self.crl), X509_get_subject_name(issuer.x509)) == 0
  }

  /// Whether the authority has signed the list, and may do so: its key usage, if it has one, includes cRLSign.
  func isSigned(by issuer: Certificate) -> Bool {
    defer { ERR_clear_error() }
    guard X509_get_key_usage(issuer.x509) & UInt32(X509v3_KU_CRL_SIGN) != 0,
      let key = X509_get0_pubkey(issuer.x509)
    else { return false }
    return X509_CRL_verify(self.crl, key) == 1
  }

  /// Whether the certificate is in the list, and was not taken out again (removeFromCRL).
  func revokes(_ certificate: Certificate) -> Bool {
    var entry: OpaquePointer?
    return X509_CRL_get0_by_cert(self.crl, &entry, certificate.x509) == 1
  }
}

/// The revocation lists of a configuration.
///
/// They say which certificates are bad, and not which are good: a certificate whose authority has no list here counts as not
/// revoked. But a list that has expired, or that its authority has not signed, refuses what the authority has issued.
package struct RevocationLists: Sendable {
  private let lists: [RevocationList]

  package init(_ lists: [RevocationList]) {
    self.lists = lists
  }

  /// Why a chain is not to be trusted, in words that continue a sentence about its first certificate; nil if it may be.
  ///
  /// - Parameter chain: Each certificate in front of its issuer's.
  func refusal(of chain: [Certificate], at now: Int) -> String? {
    for (index, pair) in zip(chain, chain.dropFirst()).enumerated() {
      let (certificate, issuer) = pair
      let named = self.lists.filter { $0.names(issuer) }
      guard !named.isEmpty else { continue }
      let signed = named.filter { $0.isSigned(by: issuer) }
      let subject = index == 0 ? "it" : "the certificate of its issuer '\(certificate.fields.subject)'"
      let authority = "'\(issuer.fields.subject)'"
      if signed.isEmpty {
        return
          "\(subject) cannot be checked: the revocation list of \(authority) is not signed by that authority"
      }
      if signed.contains(where: { $0.revokes(certificate) }) {
        return "\(subject) has been revoked by \(authority)"
      }
      let ends = signed.map { $0.nextUpdate ?? .max }
      if let end = ends.max(), end <= now {
        let date = CertificateRefusal.date(end)
        return "\(subject) cannot be checked: the revocation list of \(authority) was valid until \(date)"
      }
    }
    return nil
  }
}
