/// What a listener says to clients: routes, and the filters that calls pass.
struct ListenerResource: Sendable, Hashable {
  enum Routes: Sendable, Hashable {
    /// The name of a route configuration.
    case named(String)
    case inline(RouteConfigurationResource)
  }

  /// A filter that this client knows.
  struct Filter: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
      /// The end of the chain.
      case router
      case fault(FaultSettings)
    }

    var name: String
    var kind: Kind
  }

  var routes: Routes
  /// The longest time of calls whose route says nothing; nil for no limit. Zero means no limit.
  var maximumStreamDuration: Duration?
  /// In order, the router last.
  var filters: [Filter]
}
