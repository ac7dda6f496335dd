package import ConnectChannels

/// Which names a server's own certificate has to have. The one matcher of names for TCP and QUIC.
package enum NameRule: Hashable, Sendable {
  /// The name that the connection is for: that of the origin, of the settings, or of the endpoint.
  case connection
  /// One of these, whatever the connection is for.
  case oneOf([AcceptedIdentifier])
  /// Any name, or none.
  case any

  /// - Parameter identity: What the connection is for.
  func accepts(_ presented: PresentedIdentifiers, of identity: ReferenceIdentifier) -> Bool {
    switch self {
    case .connection: identity.matches(presented)
    case .oneOf(let names): names.contains { $0.matches(presented) }
    case .any: true
    }
  }

  /// Whether a SPIFFE ID may be what is accepted.
  var areOfWorkloads: Bool {
    guard case .oneOf(let names) = self else { return false }
    return names.contains { name in
      switch name {
      case .spiffeID, .trustDomain: true
      case .host, .uri: false
      }
    }
  }

  /// What was expected, for errors.
  func text(of identity: ReferenceIdentifier) -> String {
    switch self {
    case .connection: "'\(identity)'"
    case .oneOf(let names):
      names.prefix(10).map { "'\($0)'" }.joined(separator: " or ")
        + (names.count > 10 ? " or \(names.count - 10) more" : "")
    case .any: "anything"
    }
  }
}

/// A name that is accepted in a server's certificate.
package enum AcceptedIdentifier: Hashable, Sendable {
  /// A DNS name or an IP address (RFC 9525, section 6).
  case host(ReferenceIdentifier)
  /// A URI, byte for byte.
  case uri(String)
  case spiffeID(SPIFFEID)
  /// Any SPIFFE ID of this trust domain.
  case trustDomain(String)

  func matches(_ presented: PresentedIdentifiers) -> Bool {
    switch self {
    case .host(let identifier): identifier.matches(presented)
    case .uri(let uri): presented.uris.contains { $0.elementsEqual(uri.utf8) }
    case .spiffeID(let id): presented.spiffeID == id
    case .trustDomain(let domain): presented.spiffeID?.trustDomain == domain
    }
  }
}

extension AcceptedIdentifier: CustomStringConvertible {
  package var description: String {
    switch self {
    case .host(let identifier): identifier.description
    case .uri(let uri): CertificateName.readable(uri)
    case .spiffeID(let id): id.description
    case .trustDomain(let domain): "spiffe://\(domain)/*"
    }
  }
}
