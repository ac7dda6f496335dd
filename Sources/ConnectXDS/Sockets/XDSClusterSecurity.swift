internal import Connect
internal import ConnectNIO
internal import Synchronization

/// TLS of clusters as the control plane says. Clusters without it have the settings of the client.
final class XDSClusterSecurity: ClusterSecurityProvider, ClientCompanion {
  /// Old settings are of no use for long.
  private static let maximumSettings = 1_000

  private let bootstrap: XDSBootstrap
  private let table: SecurityTable
  /// Equal rules have the same settings, so that connections share what is made of them.
  private let settings = Mutex<[ClusterSecurity: NIOHTTPClient.Configuration.TLS]>([:])

  init(_ bootstrap: XDSBootstrap, _ table: SecurityTable) {
    self.bootstrap = bootstrap
    self.table = table
  }

  func security(ofCluster cluster: String, of origin: Origin) -> ClusterConnectionSecurity? {
    guard let security = self.table.security(of: cluster) else { return nil }
    return .tls(
      self.settings.withLock { settings in
        if let known = settings[security] { return known }
        if settings.count >= Self.maximumSettings { settings = [:] }
        let new = security.settings(self.bootstrap)
        settings[security] = new
        return new
      }
    )
  }

  /// Calls that still run may need connections.
  func shutDown() {}
}
