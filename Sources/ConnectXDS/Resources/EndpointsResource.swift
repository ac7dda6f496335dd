internal import ConnectChannels

/// The servers of a cluster.
struct EndpointsResource: Sendable, Hashable {
  struct Locality: Sendable, Hashable {
    var name: XDSLocality
    var weight: UInt32
    /// Those that are healthy or of unknown health. Zone, path and cluster are not set.
    var endpoints: [Endpoint]
  }

  /// In order of preference; each has localities.
  var priorities: [[Locality]]
  var drops: [CallLimits.Drop] = []
}
