internal import CNIOBoringSSL
internal import Connect

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// A certificate (X.509): its bytes, what is in it, and BoringSSL's form of it.
///
/// `@unchecked Sendable`: BoringSSL's object is only read after `init`, which BoringSSL allows on any thread.
package final class Certificate: @unchecked Sendable {
  package enum Validity: Sendable {
    case valid, expired, notYetValid
  }

  package let der: [UInt8]
  package let fields: CertificateFields
  /// In seconds since 1970. It is valid from then on.
  package let notBefore: Int
  /// In seconds since 1970. It is valid until then.
  package let notAfter: Int
  let x509: OpaquePointer

  /// Nil if the bytes are no certificate.
  package convenience init?(der: [UInt8]) {
    let x509 = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      guard let start = bytes.baseAddress else { return nil }
      var next: UnsafePointer<UInt8>? = start
      guard let x509 = d2i_X509(nil, &next, bytes.count) else { return nil }
      guard next == start + bytes.count else {
        X509_free(x509)
        return nil
      }
      return x509
    }
    // NIOSSL would take the errors of this thread for its own.
    ERR_clear_error()
    guard let x509 else { return nil }
    self.init(owned: x509, der: der)
  }

  /// Nil if it cannot be read. The object is freed then, too.
  private init?(owned x509: OpaquePointer, der: [UInt8]) {
    var (notBefore, notAfter) = (Int64(0), Int64(0))
    guard let fields = CertificateFields(der: der),
      ASN1_TIME_to_posix(X509_get0_notBefore(x509), &notBefore) == 1,
      ASN1_TIME_to_posix(X509_get0_notAfter(x509), &notAfter) == 1
    else {
      X509_free(x509)
      ERR_clear_error()
      return nil
    }
    self.x509 = x509
    self.der = der
    self.fields = fields
    self.notBefore = Int(clamping: notBefore)
    self.notAfter = Int(clamping: notAfter)
  }

  deinit {
    X509_free(self.x509)
  }

  /// The present time as certificates have it, in seconds since 1970.
  package static var now: Int { Int(time(nil)) }

  /// With the bounds that BoringSSL has.
  package func validity(at now: Int = Certificate.now) -> Validity {
    if self.notAfter <= now { return .expired }
    return self.notBefore > now ? .notYetValid : .valid
  }

  package var isValid: Bool { self.validity() == .valid }
}

// MARK: - PEM

extension Certificate {
  /// The certificates in a text, in its order; nil if there is none, or one that cannot be read. Other blocks are
  /// skipped.
  ///
  /// - Parameter skipsUnreadable: Whether certificates of unusual form are skipped, too.
  package static func all(inPEM text: [UInt8], skipsUnreadable: Bool = false) -> [Certificate]? {
    let certificates = ByteOrderMark.removed(from: text).withUnsafeBytes { bytes -> [Certificate]? in
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, bytes.count) else { return nil }
      defer { BIO_free(bio) }
      var certificates: [Certificate] = []
      // Also reads OpenSSL's form TRUSTED CERTIFICATE, with what it says about trust.
      while true {
        ERR_clear_error()
        if let x509 = PEM_read_bio_X509_AUX(bio, nil, nil, nil) {
          if let certificate = Certificate(owned: x509) {
            certificates.append(certificate)
          } else if !skipsUnreadable {
            return nil
          }
          continue
        }
        let error = ERR_peek_last_error()
        if ERR_GET_LIB(error) == ERR_LIB_PEM, ERR_GET_REASON(error) == PEM_R_NO_START_LINE { break }
        // The block was read, and is no certificate; the next round goes on behind it. Blocks that are cut end the text.
        guard skipsUnreadable, ERR_GET_LIB(error) != ERR_LIB_PEM else { return nil }
      }
      return certificates.isEmpty ? nil : certificates
    }
    ERR_clear_error()
    return certificates
  }

  private convenience init?(owned x509: OpaquePointer) {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = i2d_X509(x509, &bytes)
    guard count > 0, let bytes else {
      X509_free(x509)
      return nil
    }
    let der = Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    OPENSSL_free(bytes)
    self.init(owned: x509, der: der)
  }
}
