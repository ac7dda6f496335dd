package import Connect
package import ConnectChannels
internal import Logging
package import NIOCore

/// TLS of connections that speak one version of HTTP: of the client, and of the clusters that have their own.
///
/// All contexts are made when they are first needed.
package final class ClusterTLS: Sendable {
  private struct Entry {
    var settings: NIOHTTPClient.Configuration.TLS
    var contexts: TLSContextProvider
  }

  private let standard: Entry
  private let clusters: [String: Entry]

  init(_ configuration: NIOHTTPClient.Configuration, applicationProtocols: [String], logger: Logger) {
    let systemTrustRoots = SystemTrustRoots()
    let entry: (NIOHTTPClient.Configuration.TLS) -> Entry = { settings in
      let contexts = TLSContextProvider(
        settings,
        applicationProtocols: applicationProtocols,
        systemTrustRoots: systemTrustRoots,
        logger: logger
      )
      return Entry(settings: settings, contexts: contexts)
    }
    self.standard = entry(configuration.tls)
    self.clusters = configuration.tlsOfClusters.mapValues(entry)
  }

  /// The context for a new connection; fails with ``ConnectError``.
  ///
  /// - Parameter cluster: The connection's; nil for none.
  package func context(of cluster: String?, on eventLoop: any EventLoop) -> EventLoopFuture<TLSContext> {
    self.entry(cluster).contexts.context(on: eventLoop)
  }

  /// What the certificate of the server of a connection has to name.
  ///
  /// - Parameter standard: The identity without clusters.
  package func identity(
    for attempt: PooledConnection,
    of origin: Origin,
    standard: ReferenceIdentifier
  ) throws(ConnectError) -> ReferenceIdentifier {
    var identity = standard
    if let cluster = attempt.cluster, let entry = self.clusters[cluster] {
      identity = try entry.settings.identity(of: origin) ?? standard
    }
    return try ReferenceIdentifier.ofEndpoint(attempt.serverName, orOrigin: identity)
  }

  private func entry(_ cluster: String?) -> Entry {
    guard let cluster else { return self.standard }
    return self.clusters[cluster] ?? self.standard
  }
}
