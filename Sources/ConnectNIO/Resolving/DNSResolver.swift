public import Connect
public import ConnectChannels
public import Logging
internal import NIOCore
internal import NIOPosix

/// Finds endpoints by asking DNS servers itself. Unlike ``SystemResolver`` it knows for how long an answer is valid and looks
/// again then, and reads SRV records and service configs.
///
/// ```swift
/// var configuration = NIOHTTPClient.Configuration.defaults
/// configuration.channel.resolver = DNSResolver()
/// configuration.channel.resolver = DNSResolver.service("_grpc._tcp.example.com")
/// ```
///
/// Each address is an endpoint. Names of `/etc/hosts` and `localhost` need no server; other sources of
/// `/etc/nsswitch.conf` are not used. Queries go over UDP, each from a random port, and over TCP where an answer does not fit
/// into a datagram.
///
/// Where the client looks for HTTP/3 beside TCP, the resolver also asks for HTTPS records (RFC 9460) of `https`
/// origins. The addresses do not wait for these records, whose aliases and address hints are not used.
///
/// A lookup that fails is reported with the code `unavailable`. The error's `exception` is a `ResolutionError`, whose reason
/// tells a name that does not exist from servers that do not answer.
public struct DNSResolver: NameResolver {
  /// How DNS is asked, and how often.
  public struct Configuration: Hashable, Sendable {
    /// Which servers are asked, and how; nil, the default, for what `/etc/resolv.conf` says at the time of each lookup.
    public var nameServers: ResolverConfiguration?
    /// The path of a file in the format of hosts(5), read for each lookup; nil for none.
    public var hostsFile: String?
    /// Whether a service config is looked for as well: in the TXT record of `_grpc_config.HOST`, in the attribute
    /// `grpc_config=` (gRFC A2). False by default, as in gRPC's C core, since it costs another query. A config that cannot be
    /// read is logged; the last good one stays in use.
    public var readsServiceConfig: Bool
    /// How long one lookup may take, with all its queries: 2 minutes by default, as in gRPC's C core.
    public var timeout: Duration
    /// The least time between two lookups that failing connections ask for: 30 s by default.
    public var minimumInterval: Duration

    /// A configuration as given; what is left out is as in ``defaults``.
    public init(
      nameServers: ResolverConfiguration? = nil,
      hostsFile: String? = "/etc/hosts",
      readsServiceConfig: Bool = false,
      timeout: Duration = .seconds(120),
      minimumInterval: Duration = .seconds(30)
    ) {
      self.nameServers = nameServers
      self.hostsFile = hostsFile
      self.readsServiceConfig = readsServiceConfig
      self.timeout = timeout
      self.minimumInterval = minimumInterval
    }

    /// The servers of `/etc/resolv.conf`, names of `/etc/hosts`, no service configs, 2 minutes for a lookup, 30
    /// seconds between two.
    public static var defaults: Configuration { Configuration() }
  }

  private let configuration: Configuration
  private let service: String?
  private let logger: Logger
  /// Is told of HTTPS records, which are looked for only if this is not nil.
  var alternatives: SharedAlternatives?

  /// Resolves the host of the client's origin, whose port all endpoints have.
  ///
  /// - Parameters:
  ///   - configuration: How DNS is asked, and how often. ``Configuration/defaults`` by default.
  ///   - logger: Gets service configs that cannot be read, at level `warning`. By default nothing is logged.
  public init(_ configuration: Configuration = .defaults, logger: Logger? = nil) {
    self.init(service: nil, configuration, logger)
  }

  /// Resolves a service (SRV, RFC 2782), whatever the host of the client's origin, which TLS verifies.
  ///
  /// A target with one address of each family is one endpoint. A target with more is one endpoint for each address, and
  /// its weight is divided among them. A weight of 0 counts as 1. Targets with a higher priority number are left out as
  /// long as one with a lower number has an address.
  ///
  /// - Parameters:
  ///   - name: With its labels for service and protocol, such as `_grpc._tcp.example.com`.
  ///   - configuration: How DNS is asked, and how often. ``Configuration/defaults`` by default.
  ///   - logger: Gets service configs that cannot be read, at level `warning`. By default nothing is logged.
  public static func service(
    _ name: String,
    _ configuration: Configuration = .defaults,
    logger: Logger? = nil
  ) -> DNSResolver {
    DNSResolver(service: name, configuration, logger)
  }

  private init(service: String?, _ configuration: Configuration, _ logger: Logger?) {
    self.service = service
    self.configuration = configuration
    self.logger = logger ?? Logger(label: "connect.dns", factory: { _ in SwiftLogNoOpLogHandler() })
  }

  /// As ``Configuration/readsServiceConfig`` says.
  public var mayBringServiceConfig: Bool { self.configuration.readsServiceConfig }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    if self.service == nil, let endpoint = Endpoint(of: origin) {
      return StaticResolver([endpoint]).watch(origin, on: executor, report)
    }
    let environment = DNSLookup.Environment(
      configuration: self.configuration,
      executor: executor,
      eventLoop: Self.eventLoop(for: executor),
      logger: self.logger,
      alternatives: self.alternatives
    )
    let service = self.service
    let configs = ServiceConfigMemory()
    let polling = PollingResolver(
      minimumInterval: self.configuration.minimumInterval,
      cancellable: { origin, _, report in
        let lookup = DNSLookup(service: service, origin, environment, configs, report)
        lookup.start()
        return { lookup.cancel() }
      }
    )
    return polling.watch(origin, on: executor, report)
  }

  /// Where the sockets live: with the channel, if it lives on an event loop that has sockets.
  private static func eventLoop(for executor: any CallExecutor) -> any EventLoop {
    if let eventLoop = (executor as? EventLoopExecutor)?.eventLoop,
      DatagramBootstrap(validatingGroup: eventLoop) != nil
    {
      return eventLoop
    }
    return MultiThreadedEventLoopGroup.singleton.next()
  }
}
