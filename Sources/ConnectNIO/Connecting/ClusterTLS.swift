package import Connect
package import ConnectChannels
internal import Logging
package import NIOCore
internal import Synchronization

/// TLS of connections that speak one version of HTTP: of the client, and of the clusters that have their own.
///
/// All contexts are made when they are first needed.
package final class ClusterTLS: Sendable {
  /// TLS of connections: its settings, and what was made of them.
  package struct Entry: Sendable {
    fileprivate var settings: NIOHTTPClient.Configuration.TLS
    fileprivate var contexts: TLSContextProvider

    /// The context for a new connection; fails with ``ConnectError``.
    package func context(on eventLoop: any EventLoop) -> EventLoopFuture<TLSContext> {
      self.contexts.context(on: eventLoop)
    }

    /// What the certificate of the server of a connection has to name.
    ///
    /// - Throws: ``ConnectError`` if a name of the settings, the origin or the endpoint cannot be used.
    package func identity(
      for attempt: PooledConnection,
      of origin: Origin
    ) throws(ConnectError) -> ReferenceIdentifier {
      let identity = try self.settings.identity(ofServersOf: origin)
      return try ReferenceIdentifier.ofEndpoint(attempt.serverName, orOrigin: identity)
    }
  }

  /// Names may come from a control plane, and never end.
  private static let maximumWarnings = 1_000
  /// How many settings of the provider are kept with what was made of them.
  private static let maximumProvided = 256

  private let standard: Entry
  private let clusters: [String: Entry]
  private let provider: (any ClusterSecurityProvider)?
  /// What was made of settings that the provider has chosen.
  private let provided = Mutex<[NIOHTTPClient.Configuration.TLS: Entry]>([:])
  private let applicationProtocols: [String]
  private let logger: Logger
  /// The clusters without an entry that a warning was logged for.
  private let warned = Mutex<Set<String>>([])

  init(_ configuration: NIOHTTPClient.Configuration, applicationProtocols: [String], logger: Logger) {
    func entry(_ settings: NIOHTTPClient.Configuration.TLS) -> Entry {
      let contexts = TLSContextProvider(settings, applicationProtocols: applicationProtocols, logger: logger)
      return Entry(settings: settings, contexts: contexts)
    }
    self.standard = entry(configuration.tls)
    self.clusters = configuration.tlsOfClusters.mapValues(entry)
    self.provider = configuration.clusterSecurity
    self.applicationProtocols = applicationProtocols
    self.logger = logger
  }

  /// TLS of a new connection; nil if it has none.
  ///
  /// - Parameters:
  ///   - cluster: The connection's; nil for none.
  ///   - origin: Of its calls.
  package func entry(of cluster: String?, of origin: Origin) -> Entry? {
    switch self.security(of: cluster, of: origin) {
    case .plaintext: return nil
    case .tls(let settings): return self.entry(with: settings)
    case nil: break
    }
    guard origin.scheme == .https else { return nil }
    if let cluster, self.isLeftOut(cluster) { self.warn(of: cluster) }
    return cluster.flatMap { self.clusters[$0] } ?? self.standard
  }

  private func security(of cluster: String?, of origin: Origin) -> ClusterConnectionSecurity? {
    guard let provider = self.provider, let cluster else { return nil }
    return provider.security(ofCluster: cluster, of: origin)
  }

  private func entry(with settings: NIOHTTPClient.Configuration.TLS) -> Entry {
    self.provided.withLock { provided in
      if let known = provided[settings] { return known }
      if provided.count >= Self.maximumProvided { provided.removeAll() }
      let contexts = TLSContextProvider(
        settings,
        applicationProtocols: self.applicationProtocols,
        logger: self.logger
      )
      let entry = Entry(settings: settings, contexts: contexts)
      provided[settings] = entry
      return entry
    }
  }

  /// The error of a handshake, which also says whose settings it had if these may be the wrong ones.
  package func explain(_ error: ConnectError, of cluster: String?, of origin: Origin) -> ConnectError {
    guard let cluster, let message = error.message else { return error }
    var error = error
    if self.security(of: cluster, of: origin) != nil {
      error.message =
        message + "; the TLS settings are those that clusterSecurity has for the cluster \"\(cluster)\""
    } else if self.isLeftOut(cluster) {
      error.message = message + "; \(Self.hint(cluster))"
    }
    return error
  }

  private static func hint(_ cluster: String) -> String {
    "the cluster \"\(cluster)\" has no entry in tlsOfClusters, so it has the settings of tls"
  }

  /// Whether other clusters have settings of their own, and this one has not: its name may be misspelt.
  private func isLeftOut(_ cluster: String) -> Bool {
    !self.clusters.isEmpty && self.clusters[cluster] == nil
  }

  private func warn(of cluster: String) {
    let isNew = self.warned.withLock { warned in
      warned.count < Self.maximumWarnings && warned.insert(cluster).inserted
    }
    if isNew { self.logger.warning("\(Self.hint(cluster))") }
  }
}
