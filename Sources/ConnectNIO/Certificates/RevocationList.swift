internal import CNIOBoringSSL
internal import Connect
internal import Synchronization

/// A list of certificates that their authority has taken back (RFC 5280, section 5).
///
/// `@unchecked Sendable`: BoringSSL's object is only read after `init`, which BoringSSL allows on any thread. Its first search
/// sorts the entries, which `init` has done.
package final class RevocationList: @unchecked Sendable {
  /// The authority's name.
  package let issuer: String
  /// Until when it counts, in seconds since 1970.
  package let nextUpdate: Int
  /// Why it does not say of each certificate of its authority whether it is revoked; nil if it does.
  package let problem: String?
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
    self.nextUpdate = Int(clamping: nextUpdate)
    self.problem = Self.problem(of: crl)
    // Sorting a long list takes long: it is done here, and not in a handshake.
    let serial = ASN1_INTEGER_new()
    if let serial { _ = X509_CRL_get0_by_serial(crl, nil, serial) }
    ASN1_INTEGER_free(serial)
  }

  /// Extensions that change what a list is about are critical (RFC 5280, sections 5.2 and 5.3).
  private static func problem(of crl: OpaquePointer) -> String? {
    if X509_CRL_get0_nextUpdate(crl) == nil {
      return "it does not say when the next list comes (nextUpdate)"
    }
    if X509_CRL_get_ext_by_NID(crl, NID_delta_crl, -1) >= 0 { return "it is a delta list" }
    if X509_CRL_get_ext_by_NID(crl, NID_issuing_distribution_point, -1) >= 0 {
      return "it is for a part of the certificates only (issuing distribution point)"
    }
    let entries = X509_CRL_get_REVOKED(crl)
    let isUnknown =
      X509_CRL_get_ext_by_critical(crl, 1, -1) >= 0
      || (0..<OPENSSL_sk_num(entries)).contains { index in
        guard let entry = OPENSSL_sk_value(entries, index) else { return true }
        return X509_REVOKED_get_ext_by_critical(OpaquePointer(entry), 1, -1) >= 0
      }
    return isUnknown ? "it has a critical extension that is not known here" : nil
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

  /// Whether the certificate is in the list, for any reason. Only delta lists take certificates out again (removeFromCRL), and
  /// those are not used.
  func revokes(_ certificate: Certificate) -> Bool {
    var entry: OpaquePointer?
    return X509_CRL_get0_by_cert(self.crl, &entry, certificate.x509) == 1
  }
}

/// The revocation lists of a configuration.
///
/// They say which certificates are bad, and not which are good: a certificate whose authority has no list here counts as not
/// revoked. But a list that has expired, or that its authority has not signed, refuses what the authority has issued.
package final class RevocationLists: Sendable {
  /// The lists of one authority.
  private struct Own {
    /// Whether a list has the authority's name.
    var isNamed: Bool
    /// Those that it has signed.
    var signed: [RevocationList]
  }

  private static let maximumKnown = 256

  private let lists: [RevocationList]
  /// By the certificate of the authority in DER: signatures of long lists take long.
  private let known = Mutex<[[UInt8]: Own]>([:])

  package init(_ lists: [RevocationList]) {
    self.lists = lists
  }

  /// Verifies the signatures of lists, so that handshakes need not.
  func prepare(for authorities: [Certificate]) {
    for authority in authorities where self.lists.contains(where: { $0.names(authority) }) {
      _ = self.own(of: authority)
    }
  }

  private func own(of issuer: Certificate) -> Own {
    if let own = self.known.withLock({ $0[issuer.der] }) { return own }
    let named = self.lists.filter { $0.names(issuer) }
    let own = Own(isNamed: !named.isEmpty, signed: named.filter { $0.isSigned(by: issuer) })
    self.known.withLock { known in
      if known.count >= Self.maximumKnown { known.removeAll() }
      known[issuer.der] = own
    }
    return own
  }

  /// Looks a chain up.
  ///
  /// - Parameter chain: Each certificate in front of its issuer's.
  /// - Returns: Until when that counts, in seconds since 1970: the end of the first list that is needed.
  /// - Throws: Why the chain is not to be trusted, in words that continue a sentence about its first certificate.
  func check(_ chain: [Certificate], at now: Int) throws(CertificateRefusal) -> Int {
    var expiry = Int.max
    for (index, pair) in zip(chain, chain.dropFirst()).enumerated() {
      let (certificate, issuer) = pair
      let own = self.own(of: issuer)
      guard own.isNamed else { continue }
      let subject = index == 0 ? "it" : "the certificate of its issuer '\(certificate.fields.subject)'"
      let authority = "'\(issuer.fields.subject)'"
      guard let end = own.signed.lazy.map(\.nextUpdate).max() else {
        throw CertificateRefusal(
          reason:
            "\(subject) cannot be checked: the revocation list of \(authority) is not signed by that authority"
        )
      }
      if own.signed.contains(where: { $0.revokes(certificate) }) {
        throw CertificateRefusal(reason: "\(subject) has been revoked by \(authority)")
      }
      guard end > now else {
        let date = CertificateRefusal.date(end)
        throw CertificateRefusal(
          reason: "\(subject) cannot be checked: the revocation list of \(authority) was valid until \(date)"
        )
      }
      expiry = min(expiry, end)
    }
    return expiry
  }
}
