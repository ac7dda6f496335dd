internal import Connect

extension NIOHTTPClient.Configuration.HTTPVersion {
  /// What is offered in the TLS handshake, best first.
  var applicationProtocols: [String] {
    switch self {
    case .automatic: ["h2", "http/1.1"]
    case .http1Only: ["http/1.1"]
    case .http2Only: ["h2"]
    }
  }

  /// The version that connections will have, where that does not depend on the server.
  func known(for scheme: Origin.Scheme) -> HTTPConnectionInfo.Version? {
    switch (self, scheme) {
    case (.http1Only, _): .http1
    case (.http2Only, _): .http2
    case (.automatic, .https): nil
    case (.automatic, .http), (.automatic, .unix), (.automatic, .unixAbstract), (.automatic, .vsock): .http1
    }
  }
}

extension NIOHTTPClient.Configuration {
  /// The version that an origin's connections will have, where that does not depend on the server, or on the TLS of a cluster.
  func knownVersion(_ version: HTTPVersion, for scheme: Origin.Scheme) -> HTTPConnectionInfo.Version? {
    if self.clusterSecurity != nil, version == .automatic { return nil }
    return version.known(for: scheme)
  }
}
