public import Connect

/// Hears what happens to a client's channels: for metrics and logs. `ChannelMetrics` of `ConnectInterceptors` is one.
///
/// It is called on the channel's event loop, so it must not block. It is called for each call, so it should be quick. A
/// client on several event loops has a channel on each. All of them report the same resolver answers and ejections.
public protocol ChannelObserver: Sendable {
  /// An event has happened to the channel for `origin`. Called on the channel's event loop, in the order of the
  /// events.
  func channel(to origin: Origin, did event: ChannelEvent)
}

/// Where a picked endpoint is: the cluster and the zone of gRFC A78 (`grpc.lb.locality`) and A89 (`grpc.lb.backend_service`).
public struct PickPlace: Sendable, Hashable {
  /// The cluster that the endpoint belongs to; nil if the channel has no clusters.
  public var cluster: String?
  /// The endpoint's zone; nil if the resolver did not name it.
  public var zone: String?
  /// The zone of this client; nil if it is not known. See ``ChannelConfiguration/zone``.
  public var ownZone: String?

  /// A place as given.
  public init(cluster: String? = nil, zone: String? = nil, ownZone: String? = nil) {
    self.cluster = cluster
    self.zone = zone
    self.ownZone = ownZone
  }

  /// Whether the call has left the client's zone. False if one of the zones is not known.
  public var isInOtherZone: Bool {
    guard let zone = self.zone, let own = self.ownZone else { return false }
    return zone != own
  }
}

/// What happens to a channel.
public enum ChannelEvent: Sendable {
  /// The channel as a whole is in another state.
  case stateChanged(ConnectivityState)
  /// The resolver has given an answer.
  case resolved(endpoints: Int)
  /// The resolver has failed. The last good answer stays in use.
  case resolutionFailed(ConnectError)
  /// A call, or another attempt of it, goes to an endpoint.
  ///
  /// - Parameters:
  ///   - endpoint: The address that the call goes to.
  ///   - waited: For how long it has waited for an endpoint or a connection; nil if it has not.
  ///   - place: Where the endpoint is.
  case picked(endpoint: String, waited: Duration?, place: PickPlace)
  /// The balancing policy has failed a call on purpose (``PickResult/drop(category:cluster:)``): it went to no endpoint.
  ///
  /// - Parameters:
  ///   - category: What the policy calls the reason.
  ///   - cluster: The cluster whose policy it is: of an aggregate cluster, the part; nil if the channel has no clusters.
  case dropped(category: String, cluster: String?)
  /// A connection to an endpoint is ready for calls.
  case connectionOpened(endpoint: String)
  /// An attempt to connect to an endpoint has failed, with the reason.
  case connectionFailed(endpoint: String, ConnectError)
  /// A connection that was open is gone, and so are its calls: it was lost, or it was closed since it was idle or old, or its
  /// server went away. It may have taken no more calls for a while before.
  case connectionClosed(endpoint: String)
  /// Outlier detection keeps calls away from an endpoint.
  case ejected(endpoint: String)
  /// An endpoint that was ejected gets calls again.
  case returned(endpoint: String)
}
