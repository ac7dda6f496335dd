internal import Connect
internal import ConnectChannels
internal import ConnectNIO

extension ClusterSecurity {
  /// The settings of connections (gRFC A29). The host of the origin is not what the certificate has to name: the control plane
  /// says which names are accepted.
  ///
  /// Each call gives other settings, as verifiers are equal only to their copies.
  func settings(_ bootstrap: XDSBootstrap) -> NIOHTTPClient.Configuration.TLS {
    var settings = NIOHTTPClient.Configuration.TLS(certificateVerification: .chainOnly)
    var intervals: [Duration] = []
    if let name = self.roots {
      let provider = bootstrap.certificateProviders[name]
      // Without a file, no server is trusted.
      settings.trustRoots = provider?.roots.map { .pemFile($0) } ?? .pemBytes([])
      if let provider { intervals.append(provider.refreshInterval) }
    }
    if let name = self.identity, let provider = bootstrap.certificateProviders[name] {
      settings.clientCertificate = provider.identity.map {
        .pemFiles(chain: $0.certificates, privateKey: $0.key)
      }
      intervals.append(provider.refreshInterval)
    }
    if let interval = intervals.min() { settings.fileCheckInterval = interval }
    if !self.acceptedNames.isEmpty { settings.serverVerifier = self.verifier }
    return settings
  }

  private var verifier: ServerVerifier {
    let matchers = self.acceptedNames.map { AcceptedName($0) }
    return ServerVerifier { server in
      guard !matchers.contains(where: { $0.matches(server.names) }) else { return }
      let names = (server.names.dnsNames + server.names.uris + server.names.ipAddresses).prefix(4)
      throw ConnectError(
        code: .unauthenticated,
        message: """
          the server's certificate has none of the names that the control plane accepts; it has \
          \(names.isEmpty ? "no names" : names.joined(separator: ", "))
          """
      )
    }
  }
}

/// A rule for names that is ready for certificates.
struct AcceptedName: Sendable {
  private let rule: ClusterSecurity.NameMatcher.Rule
  private let ignoresCase: Bool
  private let expression: RegularExpression?
  /// The exact name as a host.
  private let host: String?

  init(_ matcher: ClusterSecurity.NameMatcher) {
    self.ignoresCase = matcher.ignoresCase
    self.rule = matcher.rule
    // The decoder has refused patterns that cannot be used. Such a pattern matches nothing.
    if case .regex(let pattern) = matcher.rule {
      self.expression = try? RegularExpression(pattern)
    } else {
      self.expression = nil
    }
    if case .exact(let text) = matcher.rule { self.host = Self.host(text) } else { self.host = nil }
  }

  func matches(_ names: CertificateNames) -> Bool {
    names.dnsNames.contains { self.host == nil ? self.matches($0) : self.matchesHost($0) }
      || names.uris.contains { self.matches($0) } || names.ipAddresses.contains { self.matches($0) }
  }

  private func matches(_ name: String) -> Bool {
    let name = self.folded(name)
    switch self.rule {
    case .exact(let text): return name == self.folded(text)
    case .prefix(let text): return name.utf8.starts(with: self.folded(text).utf8)
    case .suffix(let text): return name.utf8.reversed().starts(with: self.folded(text).utf8.reversed())
    case .contains(let text): return name.contains(self.folded(text))
    case .regex: return self.expression?.matches(name) ?? false
    }
  }

  /// Whether the exact name of the rule is one that a certificate gives to a host. A name such as `*.example.com` stands for one
  /// label in place of the star.
  private func matchesHost(_ name: String) -> Bool {
    guard let host, !host.isEmpty else { return false }
    let name = Self.host(name)
    if name == host { return true }
    guard name.hasPrefix("*."), let dot = host.firstIndex(of: "."), dot != host.startIndex else {
      return false
    }
    return host[dot...] == name.dropFirst() && name.dropFirst(2).contains(".")
  }

  /// Host names have no case, and may end with a dot.
  private static func host(_ text: String) -> String {
    let text = text.lowercased()
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }

  private func folded(_ text: String) -> String { self.ignoresCase ? text.lowercased() : text }
}
