package import Connect
package import ConnectChannels

/// Judges the certificates that a server shows, in the handshakes of TCP and of QUIC alike: whether they are to be trusted,
/// and whether they are this server's.
package struct ServerCertificateCheck: Sendable {
  private let trust: ServerTrust
  private let identity: ReferenceIdentifier
  private let origin: Origin

  /// - Parameters:
  ///   - identity: What the server's own certificate has to name, if the trust asks for it.
  ///   - origin: For errors, and for the program's own verifier.
  package init(_ trust: ServerTrust, identity: ReferenceIdentifier, origin: Origin) {
    self.trust = trust
    self.identity = identity
    self.origin = origin
  }

  private var peer: String { self.origin.description }

  /// Judges all but what the program decides itself.
  ///
  /// - Parameter shown: What the server has shown, its own certificate first, in DER.
  /// - Throws: The error of a server that is not to be trusted.
  package func check(_ shown: [[UInt8]]) throws(ConnectError) -> PeerCertificates {
    guard let verifier = self.trust.verifier else {
      let fields = shown.first.flatMap { CertificateFields(der: $0) }
      let names = fields?.names ?? PresentedIdentifiers()
      return PeerCertificates(shown: shown, chain: shown, names: names, expiry: .max)
    }
    let certificates = shown.compactMap { Certificate(der: $0) }
    guard certificates.count == shown.count, let own = certificates.first else {
      throw .noServerCertificate(peer: self.peer)
    }
    let chain: VerifiedChain
    do throws(CertificateRefusal) {
      chain = try verifier.verify(own, issuers: Array(certificates.dropFirst()))
    } catch {
      throw .refusedServerCertificate(peer: self.peer, reason: error.reason)
    }
    let names = own.fields.names
    let workload = own.fields.workloadID
    let looksForWorkload = self.trust.trustDomain != nil || self.trust.names.areOfWorkloads
    if looksForWorkload, names.spiffeID != nil, workload == nil {
      throw .refusedServerCertificate(
        peer: self.peer,
        reason: "it is an authority's, or its SPIFFE ID has no path, so it is no workload's"
      )
    }
    guard self.trust.names.accepts(names, of: self.identity) else {
      throw .serverNameMismatch(
        peer: self.peer,
        name: self.trust.names.text(of: self.identity),
        names: names.text
      )
    }
    if let domain = self.trust.trustDomain, workload?.trustDomain != domain {
      let rule = AcceptedIdentifier.trustDomain(domain)
      throw .serverNameMismatch(
        peer: self.peer,
        name: "'\(rule)', which the SPIFFE bundle is for",
        names: names.text
      )
    }
    return PeerCertificates(
      shown: shown,
      chain: chain.certificates.map(\.der),
      names: names,
      expiry: chain.expiry
    )
  }

  /// Whether the program has a part in it.
  package var asksProgram: Bool { self.trust.decision != nil }

  /// What the program has to be asked about a server that is trusted so far; nil if it has nothing to say.
  package func question(about certificates: PeerCertificates) -> ServerDecision? {
    self.trust.decision.map { verifier in
      ServerDecision(
        verifier,
        ServerVerifier.Server(
          host: self.origin.host,
          port: self.origin.port,
          certificates: certificates.chain,
          names: CertificateNames(certificates.names)
        ),
        peer: self.peer
      )
    }
  }
}

extension ServerCertificateCheck {
  /// Which hosts calls over a connection to the server may ask for; nil for any, where names do not count. They count for the
  /// program's own verifier, which has accepted the server for the client's host and no other.
  ///
  /// - Parameter certificates: Those of the server, which may change until the handshake is complete.
  package func authorities(_ certificates: @escaping () -> PeerCertificates?) -> AuthorityCheck? {
    guard self.asksProgram || self.trust.verifier != nil && self.trust.names != .any else { return nil }
    return AuthorityCheck(
      of: self.origin.description,
      names: { certificates()?.names ?? PresentedIdentifiers() },
      text: \.text
    )
  }
}

extension PresentedIdentifiers {
  /// The names as text, for example `localhost, 127.0.0.1`; nil if there are none.
  package var text: String? {
    let names =
      self.dnsNames.map { CertificateName.readable(String(decoding: $0, as: UTF8.self)) }
      + self.addresses.compactMap { IPAddress(bytes: $0)?.description }
      + self.uris.map { CertificateName.readable(String(decoding: $0, as: UTF8.self)) }
    guard !names.isEmpty else { return nil }
    let shown = names.prefix(10).joined(separator: ", ")
    return names.count > 10 ? "\(shown) and \(names.count - 10) more" : shown
  }
}
