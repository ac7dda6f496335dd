public import Connect

/// Chooses TLS for connections to the servers of clusters, for ``NIOHTTPClient/Configuration/clusterSecurity``: for programs whose
/// clusters come from a control plane.
public protocol ClusterSecurityProvider: Sendable {
  /// What the connections to a cluster's servers need. Called each time that one is opened, on its event loop, and by several of
  /// them at once: it must not block.
  ///
  /// - Parameters:
  ///   - cluster: The cluster's name: that of the endpoint (`Endpoint.cluster`), else that of the route.
  ///   - origin: The origin of the calls.
  /// - Returns: Nil for the client's own settings (``NIOHTTPClient/Configuration/tlsOfClusters``, ``NIOHTTPClient/Configuration/tls``),
  ///   with TLS for `https` origins alone.
  func security(ofCluster cluster: String, of origin: Origin) -> ClusterConnectionSecurity?
}

/// What connections to the servers of a cluster need.
public enum ClusterConnectionSecurity: Sendable, Hashable {
  /// No TLS, also for an `https` origin.
  case plaintext
  /// TLS with these settings, also for an origin that is not `https`. Equal settings share what is made of them: return the same
  /// `serverVerifier` for the same rules, since each new one is another.
  case tls(NIOHTTPClient.Configuration.TLS)
}
