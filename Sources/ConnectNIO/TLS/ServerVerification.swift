internal import Connect
internal import NIOCore
internal import NIOSSL

/// The verification of the server in one TLS handshake over TCP. Confined to the connection's event loop.
final class ServerVerification {
  private let check: ServerCertificateCheck
  /// The server's certificates, once they are trusted. Without them, a handshake that has succeeded is one with nobody.
  private(set) var certificates: PeerCertificates?
  /// Why the server is not trusted, once that is known.
  private(set) var problem: ConnectError?
  private var decision: ServerDecision?
  /// Belongs in front of the TLS handler; nil if the program is not asked.
  let readPause: ReadPause?

  init(_ check: ServerCertificateCheck) {
    self.check = check
    self.readPause = check.asksProgram ? ReadPause() : nil
  }

  /// Whether it is the program's turn to decide.
  var isPending: Bool { self.decision?.isPending == true }

  /// The TLS handler of the handshake.
  ///
  /// - Parameter serverName: What the server is asked for (SNI); nil for an IP address.
  func makeHandler(
    _ context: NIOSSLContext,
    serverName: String?,
    on eventLoop: any EventLoop
  ) throws -> NIOSSLClientHandler {
    // It is called before the client shows its own certificate.
    try NIOSSLClientHandler(
      context: context,
      serverHostname: serverName,
      customVerificationCallback: { certificates, promise in
        self.verify(certificates, on: eventLoop) { isTrusted in
          promise.succeed(isTrusted ? .certificateVerified : .failed)
        }
      }
    )
  }

  /// The channel is closed: nobody waits any more.
  func abandon() { self.decision?.abandon() }

  private func verify(
    _ certificates: [NIOSSLCertificate],
    on eventLoop: any EventLoop,
    _ completion: @escaping (Bool) -> Void
  ) {
    let shown = certificates.compactMap { try? $0.toDERBytes() }
    guard shown.count == certificates.count else { return completion(false) }
    let found: PeerCertificates
    do throws(ConnectError) {
      found = try self.check.check(shown)
    } catch {
      self.problem = error
      return completion(false)
    }
    guard let decision = self.check.question(about: found) else {
      self.certificates = found
      return completion(true)
    }
    self.decision = decision
    self.readPause?.begin()
    decision.ask(on: eventLoop) { [weak decision] in
      self.readPause?.end()
      switch decision?.state {
      case .accepted: self.certificates = found
      case .refused(let error): self.problem = error
      case .new, .pending, .abandoned, nil: break
      }
      completion(self.certificates != nil)
    }
  }
}
