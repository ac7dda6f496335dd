internal import Connect

/// How a client finds the servers behind a name, spreads calls over them, and cares for its connections. The defaults suit a
/// name with one server, or with several that are as good as each other.
public struct ChannelConfiguration: Sendable {
  /// Finds the endpoints of an origin; nil, the default, for the transport's own way: the system's resolver for sockets.
  public var resolver: (any NameResolver)?
  /// How calls are spread; nil, the default, for what the service config says, else ``BalancingPolicy/pickFirst``.
  public var balancing: BalancingPolicy?
  /// Rules for the service: for the channel (``ServiceConfig/loadBalancing``, health) and for its calls
  /// (``ServiceConfig/methods``). They count until the resolver brings a service config.
  public var serviceConfig: ServiceConfig?
  /// Routes and clusters, for names behind which there are several sets of servers; nil, the default, for none. They count until
  /// the resolver brings others.
  public var routing: Routing?
  /// Where this client runs, such as an availability zone, with the same names as ``Endpoint/zone``; nil, the default, if that
  /// is not known. For ``BalancingPolicy/zoneAware(_:of:)``.
  public var zone: String?
  /// The service whose health is watched at each endpoint (`grpc.health.v1.Health/Watch`, gRFC A17): endpoints that do not
  /// serve it get no calls. Empty for the whole server; nil, the default, for no health checks. It needs HTTP/2, and has no
  /// effect with ``BalancingPolicy/pickFirst``, which the log says at level `warning`.
  public var healthCheckedService: String?
  /// How long a channel without calls keeps its connections and endpoints, until the next call: 30 minutes by default;
  /// from 100 years on, forever. Connections that are not needed close earlier, as the transport's idle timeout says.
  public var idleTimeout: Duration
  /// For how long a connection takes new calls, varied at random by up to 10 %. Connections through a virtual address
  /// then spread again over the servers behind it. Nil, the default, for as long as the server likes.
  public var maximumConnectionAge: Duration?
  /// Hears of connections, picks, ejections and resolver updates; nil, the default, for nobody.
  public var observer: (any ChannelObserver)?
  /// How long after a failed attempt to connect the next one begins.
  public var backoff: Backoff

  /// A configuration as given; what is left out is as in ``defaults``.
  public init(
    resolver: (any NameResolver)? = nil,
    balancing: BalancingPolicy? = nil,
    serviceConfig: ServiceConfig? = nil,
    routing: Routing? = nil,
    zone: String? = nil,
    healthCheckedService: String? = nil,
    idleTimeout: Duration = .seconds(1_800),
    maximumConnectionAge: Duration? = nil,
    observer: (any ChannelObserver)? = nil,
    backoff: Backoff = .defaults
  ) {
    self.resolver = resolver
    self.balancing = balancing
    self.serviceConfig = serviceConfig
    self.routing = routing
    self.zone = zone
    self.healthCheckedService = healthCheckedService
    self.idleTimeout = idleTimeout
    self.maximumConnectionAge = maximumConnectionAge
    self.observer = observer
    self.backoff = backoff
  }

  /// The transport's resolver, the service config's or no balancing, no health checks, 30 minutes idle, gRPC's
  /// backoff.
  public static var defaults: ChannelConfiguration { ChannelConfiguration() }

  /// The time from the start of an attempt to connect to the start of the next one, if it fails: gRPC's rule
  /// (<https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md>). While all attempts fail, calls that do not wait
  /// for a connection fail at once.
  public struct Backoff: Sendable, Hashable {
    /// After the first failure: 1 s by default, at least 1 ms.
    public var initial: Duration
    /// By how much the time grows with each further failure: 1.6 by default; less than 1 counts as 1.
    public var multiplier: Double
    /// The longest time, before jitter: 120 s by default.
    public var maximum: Duration
    /// Which part of the time is random: 0.2 by default, which is from 20 % less to 20 % more. Clients of a server that
    /// was lost then do not come back together.
    public var jitter: Double

    /// A backoff as given; what is left out is as in ``defaults``.
    public init(
      initial: Duration = .seconds(1),
      multiplier: Double = 1.6,
      maximum: Duration = .seconds(120),
      jitter: Double = 0.2
    ) {
      self.initial = initial
      self.multiplier = multiplier
      self.maximum = maximum
      self.jitter = jitter
    }

    /// 1 s, times 1.6 with each failure, up to 120 s, with a jitter of 20 %: gRPC's defaults.
    public static var defaults: Backoff { Backoff() }
  }
}
