public import Connect

/// Hears what happens to a client's channels: for metrics and logs. `ChannelMetrics` of `ConnectInterceptors` is one.
///
/// It is called on the channel's event loop, so it must not block, and with each call: it should be quick. A client on several
/// event loops has a channel on each, which all tell the same of resolvers and ejections.
public protocol ChannelObserver: Sendable {
  func channel(to origin: Origin, did event: ChannelEvent)
}

/// What happens to a channel.
public enum ChannelEvent: Sendable {
  case stateChanged(ConnectivityState)
  /// The resolver has given an answer.
  case resolved(endpoints: Int)
  /// The resolver has failed. The last good answer stays in use.
  case resolutionFailed(ConnectError)
  /// A call, or another attempt of it, goes to an endpoint.
  ///
  /// - Parameter waited: For how long it has waited for an endpoint or a connection; nil if it has not.
  case picked(endpoint: String, waited: Duration?)
  case connectionOpened(endpoint: String)
  case connectionFailed(endpoint: String, ConnectError)
  /// A connection takes no more calls: it is lost, idle, old, or its server goes away.
  case connectionClosed(endpoint: String)
  /// Outlier detection keeps calls away from an endpoint.
  case ejected(endpoint: String)
  /// An endpoint that was ejected gets calls again.
  case returned(endpoint: String)
}
