internal import CNIOBoringSSL

/// Decides whether the certificates that a server shows lead to one that is trusted (RFC 5280, section 6), for TCP and
/// QUIC alike. Which names they have is not looked at.
///
/// The work is BoringSSL's, except for which certificates it gets. It takes the first issuer with the right name and key,
/// and does not look for another if that one has expired. So it gets only those that are valid now: neither an expired
/// authority in front of its renewed one nor an expired certificate in the server's list hides another.
///
/// NIOSSL cannot be told which issuers to use, nor that any trusted certificate ends a chain. Therefore this file,
/// `Certificate`, `RevocationList` and `CertificateRefusal` use the BoringSSL that NIOSSL brings, and no other file does.
/// BoringSSL is no product of swift-nio-ssl, so a release of swift-nio-ssl may break the build.
package struct CertificateVerifier: Sendable {
  package let anchors: TrustAnchors
  /// What authorities have taken back; nil if nobody looks.
  private let revocation: RevocationLists?

  package init(_ anchors: TrustAnchors, revocation: RevocationLists? = nil) {
    self.anchors = anchors
    self.revocation = revocation
    revocation?.prepare(for: anchors.authorities)
  }

  /// What BoringSSL found wrong.
  struct Fault: Error {
    /// A code of this file's own.
    static let weakSignature: CInt = -1

    /// One of `X509_V_ERR_…`, or ``weakSignature``.
    var code: CInt
    /// The certificate that is at fault, if there is one.
    var certificate: Certificate?

    var isOfDates: Bool {
      self.code == X509_V_ERR_CERT_HAS_EXPIRED || self.code == X509_V_ERR_CERT_NOT_YET_VALID
    }

    /// Whether there is no chain to a trusted certificate, rather than one with a fault.
    var isOfMissingIssuer: Bool {
      switch Int32(self.code) {
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
        X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
        true
      default:
        false
      }
    }
  }

  /// - Parameters:
  ///   - own: The server's own certificate.
  ///   - issuers: The others that it has shown, in any order.
  ///   - now: The time, in seconds since 1970.
  /// - Throws: Why there is no chain, in words.
  package func verify(
    _ own: Certificate,
    issuers: [Certificate],
    at now: Int = Certificate.now
  ) throws(CertificateRefusal) -> VerifiedChain {
    if !self.anchors.haveTrustSettings, let pinned = self.anchors.anchor(equalTo: own) {
      // It is trusted by itself, whatever the server shows with it.
      guard pinned.fields.mayBeServer, pinned.validity(at: now) == .valid else {
        throw CertificateRefusal(of: own, nil, by: self.anchors, at: now)
      }
      return VerifiedChain(certificates: [pinned])
    }
    let validIssuers = issuers.filter { $0.validity(at: now) == .valid }
    let validAnchors = self.anchors.authorities.filter { $0.validity(at: now) == .valid }
    var chain: VerifiedChain
    do throws(Fault) {
      chain = try self.chain(of: own, issuers: validIssuers, trusted: validAnchors, at: now)
    } catch {
      // The fewest that are out of date first, so that the one that is named was needed.
      let attempts = [
        (validIssuers, self.anchors.authorities), (issuers, validAnchors),
        (issuers, self.anchors.authorities),
      ]
      let fault = error.isOfMissingIssuer ? self.missingLink(of: own, attempts, at: now) : nil
      throw CertificateRefusal(of: own, fault ?? error, by: self.anchors, at: now)
    }
    if let revocation = self.revocation {
      chain.revocationExpiry = try revocation.check(chain.certificates, at: now)
    }
    return chain
  }

  /// The certificate that was needed, and left out because of its dates; nil if it was not that. With those that were left
  /// out, there is no chain either, but BoringSSL says what is wrong with them.
  private func missingLink(
    of own: Certificate,
    _ attempts: [(issuers: [Certificate], trusted: [Certificate])],
    at now: Int
  ) -> Fault? {
    for (issuers, trusted) in attempts {
      do throws(Fault) {
        _ = try self.chain(of: own, issuers: issuers, trusted: trusted, at: now)
      } catch {
        if error.isOfDates { return error }
      }
    }
    return nil
  }

  /// Lets BoringSSL build and verify a chain.
  private func chain(
    of own: Certificate,
    issuers: [Certificate],
    trusted: [Certificate],
    at now: Int
  ) throws(Fault) -> VerifiedChain {
    // The errors of this thread would otherwise look like NIOSSL's.
    defer { ERR_clear_error() }
    let (untrustedList, trustedList) = (CertificateList(issuers), CertificateList(trusted))
    // BoringSSL wants one. What is trusted is in the list.
    let store = X509_STORE_new()
    let context = X509_STORE_CTX_new()
    defer {
      X509_STORE_CTX_free(context)
      X509_STORE_free(store)
    }
    guard let store, let context, let untrusted = untrustedList.pointer, let anchors = trustedList.pointer,
      X509_STORE_CTX_init(context, store, own.x509, untrusted) == 1,
      X509_STORE_CTX_set_default(context, "ssl_server") == 1
    else { throw Fault(code: CInt(X509_V_ERR_OUT_OF_MEM)) }
    X509_STORE_CTX_set0_trusted_stack(context, anchors)
    X509_STORE_CTX_set_time_posix(context, 0, Int64(now))
    if !self.anchors.haveTrustSettings {
      X509_STORE_CTX_set_flags(context, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    }
    return try withExtendedLifetime((untrustedList, trustedList)) { () throws(Fault) in
      let known = [own] + issuers + trusted
      guard X509_verify_cert(context) == 1 else {
        let culprit = X509_STORE_CTX_get_current_cert(context)
        throw Fault(
          code: X509_STORE_CTX_get_error(context),
          certificate: known.first { $0.x509 == culprit }
        )
      }
      let chain = X509_STORE_CTX_get0_chain(context)
      let pointers = (0..<OPENSSL_sk_num(chain)).map { index in
        OPENSSL_sk_value(chain, index).map { OpaquePointer($0) }
      }
      let isMember = { (certificate: Certificate) in pointers.contains(certificate.x509) }
      // BoringSSL accepts SHA-1. How something trusted is signed does not matter.
      if let weak = ([own] + issuers).first(where: { isMember($0) && $0.fields.isWeaklySigned }) {
        throw Fault(code: Fault.weakSignature, certificate: weak)
      }
      return VerifiedChain(
        certificates: pointers.compactMap { pointer in known.first { $0.x509 == pointer } }
      )
    }
  }
}

/// From the server's own certificate to the trusted one, which may be the same.
package struct VerifiedChain: Sendable {
  package var certificates: [Certificate]

  /// When the first revocation list expires that was needed, in seconds since 1970.
  fileprivate(set) var revocationExpiry = Int.max

  /// Until when the chain counts, in seconds since 1970: when the first certificate or list expires.
  package var expiry: Int {
    min(self.certificates.lazy.map(\.notAfter).min() ?? 0, self.revocationExpiry)
  }
}

/// Certificates in the form that BoringSSL wants. The pointer is valid as long as the list.
private final class CertificateList {
  let pointer: OpaquePointer?
  private let certificates: [Certificate]

  init(_ certificates: [Certificate]) {
    self.certificates = certificates
    let list = OPENSSL_sk_new_null()
    let isComplete = certificates.allSatisfy { certificate in
      OPENSSL_sk_push(list, UnsafeMutableRawPointer(certificate.x509)) > 0
    }
    if isComplete {
      self.pointer = list
    } else {
      OPENSSL_sk_free(list)
      self.pointer = nil
    }
  }

  deinit {
    OPENSSL_sk_free(self.pointer)
  }
}
