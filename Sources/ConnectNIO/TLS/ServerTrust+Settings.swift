internal import Connect
internal import ConnectChannels

extension NIOHTTPClient.Configuration.TLS {
  /// Which names count.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition` if a name cannot be used.
  var nameRule: NameRule {
    get throws(ConnectError) {
      switch self.certificateVerification {
      case .full: return .connection
      case .chainOnly, .none: return .any
      case .names(let names):
        guard !names.isEmpty else {
          throw Self.unusable(
            "certificateVerification is .names without a name; add one, or use .chainOnly for servers of any name"
          )
        }
        var identifiers: [AcceptedIdentifier] = []
        for name in names { identifiers.append(try name.identifier) }
        return .oneOf(identifiers)
      }
    }
  }

  /// The SPIFFE trust domain that is trusted; nil for trust roots without one.
  var trustDomain: String? {
    get throws(ConnectError) {
      guard case .spiffeBundleFile(_, let domain) = self.trustRoots else { return nil }
      do throws(HostProblem) {
        try SPIFFEID.check(trustDomain: domain)
      } catch {
        throw Self.unusable(
          "the trust domain '\(CertificateName.readable(domain))' of the SPIFFE bundle cannot be used: \(error.text)"
        )
      }
      return domain
    }
  }

  static func unusable(_ message: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: message)
  }
}

extension NIOHTTPClient.Configuration.TLS.AcceptedName {
  fileprivate var identifier: AcceptedIdentifier {
    get throws(ConnectError) {
      do throws(HostProblem) {
        switch self {
        case .dnsName(let text):
          guard case .name(let name) = try ReferenceIdentifier(text) else {
            throw HostProblem(text: "it is an IP address; use .ipAddress")
          }
          return .host(.name(name))
        case .ipAddress(let text):
          guard case .address(let address) = try ReferenceIdentifier(text) else {
            throw HostProblem(text: "it is no IP address; use .dnsName")
          }
          return .host(.address(address))
        case .uri(let text):
          guard !text.lowercased().hasPrefix("spiffe:") else {
            throw HostProblem(text: "it is a SPIFFE ID; use .spiffeID")
          }
          guard text.utf8.contains(UInt8(ascii: ":")), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
          else {
            throw HostProblem(
              text: "it is no URI in ASCII with a scheme, such as https://example.com/service"
            )
          }
          return .uri(text)
        case .spiffeID(let text):
          let id = try SPIFFEID(text)
          guard !id.path.isEmpty else {
            throw HostProblem(text: "it is a trust domain, and no workload's ID; use .spiffeTrustDomain")
          }
          return .spiffeID(id)
        case .spiffeTrustDomain(let text):
          guard !text.hasPrefix("spiffe:") else {
            throw HostProblem(text: "write the trust domain alone, without spiffe://")
          }
          try SPIFFEID.check(trustDomain: text)
          return .trustDomain(text)
        }
      } catch {
        let name = CertificateName.readable(self.text)
        throw NIOHTTPClient.Configuration.TLS.unusable(
          "the accepted name '\(name)' (certificateVerification) cannot be used: \(error.text)"
        )
      }
    }
  }

  private var text: String {
    switch self {
    case .dnsName(let text), .ipAddress(let text), .uri(let text), .spiffeID(let text),
      .spiffeTrustDomain(let text):
      text
    }
  }
}
