internal import Connect
internal import NIOCore
internal import NIOSSL

/// The verification of the server in one TLS handshake over TCP. Confined to the connection's event loop.
final class ServerVerification {
  private let check: ServerCertificateCheck?
  /// Whether a handshake that has succeeded is one with a server that may be trusted.
  private(set) var isTrusted: Bool
  /// Why the server is not trusted, once that is known.
  private(set) var problem: ConnectError?

  /// - Parameter check: Nil if any server is accepted.
  init(_ check: ServerCertificateCheck?) {
    self.check = check
    self.isTrusted = check == nil
  }

  /// The TLS handler of the handshake.
  ///
  /// - Parameter serverName: What the server is asked for (SNI); nil for an IP address.
  func makeHandler(_ context: NIOSSLContext, serverName: String?) throws -> NIOSSLClientHandler {
    guard let check = self.check else {
      return try NIOSSLClientHandler(context: context, serverHostname: serverName)
    }
    // It is called before the client shows its own certificate.
    return try NIOSSLClientHandler(
      context: context,
      serverHostname: serverName,
      customVerificationCallback: { certificates, promise in
        promise.succeed(self.verify(certificates, check) ? .certificateVerified : .failed)
      }
    )
  }

  private func verify(_ certificates: [NIOSSLCertificate], _ check: ServerCertificateCheck) -> Bool {
    let chain = certificates.compactMap { try? $0.toDERBytes() }
    guard chain.count == certificates.count else { return false }
    do throws(ConnectError) {
      _ = try check.check(chain)
      self.isTrusted = true
    } catch {
      self.problem = error
    }
    return self.isTrusted
  }
}
