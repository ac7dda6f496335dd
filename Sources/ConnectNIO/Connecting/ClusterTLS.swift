package import Connect
package import ConnectChannels
internal import Logging
package import NIOCore
internal import Synchronization

/// TLS of connections that speak one version of HTTP: of the client, and of the clusters that have their own.
///
/// All contexts are made when they are first needed.
package final class ClusterTLS: Sendable {
  private struct Entry {
    var settings: NIOHTTPClient.Configuration.TLS
    var contexts: TLSContextProvider
  }

  /// Names may come from a control plane, and never end.
  private static let maximumWarnings = 1_000

  private let standard: Entry
  private let clusters: [String: Entry]
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
    self.logger = logger
  }

  /// The context for a new connection; fails with ``ConnectError``.
  ///
  /// - Parameter cluster: The connection's; nil for none.
  package func context(of cluster: String?, on eventLoop: any EventLoop) -> EventLoopFuture<TLSContext> {
    if let cluster, self.isLeftOut(cluster) { self.warn(of: cluster) }
    return self.entry(cluster).contexts.context(on: eventLoop)
  }

  /// What the certificate of the server of a connection to an `https` origin has to name.
  ///
  /// - Throws: ``ConnectError`` if a name of the settings, the origin or the endpoint cannot be used.
  package func identity(
    for attempt: PooledConnection,
    of origin: Origin
  ) throws(ConnectError) -> ReferenceIdentifier {
    guard let identity = try self.entry(attempt.cluster).settings.identity(of: origin) else {
      throw ConnectError(code: .internalError, message: "\(origin) has no TLS")
    }
    return try ReferenceIdentifier.ofEndpoint(attempt.serverName, orOrigin: identity)
  }

  /// The error of a handshake, which also says whose settings it had if these may be the wrong ones.
  package func explain(_ error: ConnectError, of cluster: String?) -> ConnectError {
    guard let cluster, self.isLeftOut(cluster), let message = error.message else { return error }
    var error = error
    error.message = message + "; \(Self.hint(cluster))"
    return error
  }

  private static func hint(_ cluster: String) -> String {
    "the cluster \"\(cluster)\" has no entry in tlsOfClusters, so it has the settings of tls"
  }

  private func entry(_ cluster: String?) -> Entry {
    guard let cluster else { return self.standard }
    return self.clusters[cluster] ?? self.standard
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
