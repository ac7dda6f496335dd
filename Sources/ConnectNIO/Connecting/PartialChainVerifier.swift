internal import NIOSSL

/// Lets BoringSSL verify a server's certificates, and accepts any trust anchor as the end of a chain. For one
/// handshake; confined to its event loop.
///
/// BoringSSL can do that by itself (`X509_V_FLAG_PARTIAL_CHAIN`), but NIOSSL has no way to ask for it. A verification
/// callback does the same here. BoringSSL calls it for each good certificate, and for each fault, without telling the
/// fault. A fault is forgiven only if the certificate is a trust anchor, byte for byte, and valid by its dates.
/// Signatures and all other certificates are up to BoringSSL, the host name is up to NIOSSL.
///
/// The context must have no self-signed authorities. BoringSSL checks the policies of chains that end with one, and
/// may call back about them without a certificate, which makes NIOSSL trap.
final class PartialChainVerifier {
  private let anchors: TrustAnchors
  private var forgiven: [TrustAnchors.Anchor] = []
  /// The first certificate with a fault that was not forgiven.
  private(set) var faulty: NIOSSLCertificate?

  init(_ anchors: TrustAnchors) {
    self.anchors = anchors
  }

  func makeHandler(_ context: NIOSSLContext, serverHostname: String?) throws -> NIOSSLClientHandler {
    let maker: any HandlerMaker.Type = OverridingHandlerMaker.self
    return try maker.makeHandler(context, serverHostname) { self.verify($1, $0) }
  }

  private func verify(
    _ certificate: NIOSSLCertificate,
    _ result: NIOSSLVerificationResult
  ) -> NIOSSLVerificationResult {
    switch result {
    case .certificateVerified:
      // BoringSSL does not look at policies when the end of the chain was forgiven. A verifier that cannot process this
      // extension has to refuse the certificate (RFC 5280, sections 4.2 and 4.2.1.11).
      let fields = (try? certificate.toDERBytes()).flatMap { CertificateFields(der: $0) }
      if let fields, !fields.hasPolicyConstraints { return .certificateVerified }
    case .failed:
      if let anchor = self.anchors.anchor(equalTo: certificate), certificate.validity == .valid {
        self.forgiven.append(anchor)
        return .certificateVerified
      }
    }
    if self.faulty == nil { self.faulty = certificate }
    return .failed
  }

  /// Whether it was right to forgive the faults. To be called when the handshake is over, before anything else.
  ///
  /// - Parameter certificate: The server's own.
  func accepts(_ certificate: NIOSSLCertificate) -> Bool {
    // Any certificate can stand for itself, whatever the server shows with it, but only an authority's for others.
    if let own = self.anchors.anchor(equalTo: certificate) { return own.fields.mayBeServer }
    return self.forgiven.allSatisfy(\.isIntermediate)
  }
}

/// Avoids the warning for a function that NIOSSL has deprecated. Nothing else keeps BoringSSL's own verification: the
/// callback that NIOSSL recommends has to do all of it itself, signatures included.
private protocol HandlerMaker {
  static func makeHandler(
    _ context: NIOSSLContext,
    _ serverHostname: String?,
    _ callback: @escaping NIOSSLVerificationCallback
  ) throws -> NIOSSLClientHandler
}

private enum OverridingHandlerMaker: HandlerMaker {
  @available(*, deprecated)
  static func makeHandler(
    _ context: NIOSSLContext,
    _ serverHostname: String?,
    _ callback: @escaping NIOSSLVerificationCallback
  ) throws -> NIOSSLClientHandler {
    try NIOSSLClientHandler(context: context, serverHostname: serverHostname, verificationCallback: callback)
  }
}
