internal import Connect
internal import NIOSSL
internal import Synchronization

/// The TLS contexts for connections to servers: up to two, which verify in different ways.
package final class TLSContexts: Sendable {
  enum Verification: Sendable {
    /// Everything is up to BoringSSL, which wants chains that end with a self-signed authority.
    case standard
    /// Any trust anchor ends a chain: an intermediate authority, and also the server's own certificate. This is
    /// what OpenSSL calls a partial chain. See ``PartialChainVerifier``.
    case partialChain
  }

  /// Nil if the system's trust roots count, or nothing is verified.
  var anchors: TrustAnchors? { self.material.anchors }
  /// The material that the contexts were made of.
  package let material: TLSMaterial
  private let standard: NIOSSLContext?
  private let partialChain: NIOSSLContext?
  /// The origins where the partial chain worked last. Other origins are tried with the standard verification first.
  private let partialChainOrigins = Mutex<Set<Origin>>([])

  /// - Parameters:
  ///   - configuration: Everything but the trust anchors.
  ///   - material: Has the trust anchors.
  ///   - allowsPartialChains: Whether the anchors mean no more than what is in the certificates themselves.
  init(_ configuration: TLSConfiguration, material: TLSMaterial, allowsPartialChains: Bool) throws {
    self.material = material
    guard let anchors = material.anchors else {
      self.standard = try NIOSSLContext(configuration: configuration)
      self.partialChain = nil
      return
    }
    func context(_ isIncluded: (TrustAnchors.Anchor) -> Bool) throws -> NIOSSLContext {
      var configuration = configuration
      configuration.trustRoots = .certificates(anchors.all.filter(isIncluded).map(\.certificate))
      return try NIOSSLContext(configuration: configuration)
    }
    // BoringSSL believes what a trusted certificate has signed, even if the certificate is no authority's. Such
    // certificates are left out: the certificate of one server must not vouch for another. An empty list means that
    // none is trusted.
    let needsStandard = !allowsPartialChains || anchors.all.contains(where: \.isRoot)
    self.standard = needsStandard ? try context(\.isAuthority) : nil
    self.partialChain = allowsPartialChains ? try context(\.isIntermediate) : nil
  }

  func context(_ verification: Verification) -> NIOSSLContext? {
    switch verification {
    case .standard: self.standard
    case .partialChain: self.partialChain
    }
  }

  /// The ways to verify a server, the likeliest first.
  func verifications(of origin: Origin) -> [Verification] {
    let first: Verification =
      self.partialChainOrigins.withLock { $0.contains(origin) } ? .partialChain : .standard
    let second: Verification = first == .standard ? .partialChain : .standard
    return [first, second].filter { self.context($0) != nil }
  }

  func verified(_ origin: Origin, by verification: Verification) {
    guard self.partialChain != nil, self.standard != nil else { return }
    self.partialChainOrigins.withLock { origins in
      switch verification {
      case .standard: _ = origins.remove(origin)
      case .partialChain: _ = origins.insert(origin)
      }
    }
  }
}
