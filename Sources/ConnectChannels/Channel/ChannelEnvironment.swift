package import Connect
package import Logging

/// What a transport provides for a channel, and the channel's limits.
package struct ChannelEnvironment {
  package var origin: Origin
  package var executor: any CallExecutor
  package var opener: any ConnectionOpener
  package var shared: SharedOrigin
  package var configuration: ChannelConfiguration
  package var limits: ConnectionLimits
  /// The version of HTTP that connections will have; nil if the handshake tells.
  package var version: HTTPConnectionInfo.Version?
  /// How long it may take to find the addresses, and then to have a connection to one of them.
  package var connectTimeout: Duration
  package var maximumHeaderListSize: Int
  package var logger: Logger
  /// Seeds all random choices of the channel.
  package var seed: UInt64
  /// The cluster that the channel leads to; nil for the channel of an origin. Transports choose TLS by it.
  package var cluster: String?
  /// Called on the executor when the state of a cluster's channel has changed; nil for the channel of an origin.
  var onStateChange: (@Sendable () -> Void)?

  /// - Parameters:
  ///   - resolver: Used where the configuration names none.
  ///   - shared: Shared with the other channels to the origin; nil if there is none.
  ///   - clusters: Without `shared`, what keeps the clusters of channels for other versions of HTTP alive; nil if there are
  ///     none.
  package init(
    origin: Origin,
    executor: any CallExecutor,
    opener: any ConnectionOpener,
    resolver: any NameResolver,
    configuration: ChannelConfiguration = .defaults,
    limits: ConnectionLimits = ConnectionLimits(),
    version: HTTPConnectionInfo.Version? = nil,
    connectTimeout: Duration = .seconds(20),
    maximumHeaderListSize: Int = HeaderListSize.defaultLimit,
    logger: Logger,
    seed: UInt64 = .random(in: 0 ... .max),
    sharing shared: SharedOrigin? = nil,
    clusters: ClusterHandles? = nil
  ) {
    self.origin = origin
    self.executor = executor
    self.opener = opener
    self.shared =
      shared
      ?? SharedOrigin(
        resolver: configuration.resolver ?? resolver,
        on: executor,
        seed: seed,
        clusters: clusters
      )
    self.configuration = configuration
    self.limits = limits
    self.version = version
    self.connectTimeout = max(connectTimeout.clamped, .milliseconds(1))
    self.maximumHeaderListSize = maximumHeaderListSize
    self.logger = logger
    self.seed = seed
  }
}

extension ChannelEnvironment {
  /// The origin, and the cluster if there is one, for messages.
  var place: String { self.origin.place(of: self.cluster) }

  /// Whether the program gives routes, and no resolver that could bring others.
  var hasFixedRoutes: Bool { self.configuration.routing != nil && self.configuration.resolver == nil }

  /// The configured backoff between attempts to connect.
  var backoff: ConnectionBackoff.Configuration {
    let backoff = self.configuration.backoff
    return ConnectionBackoff.Configuration(
      initial: max(backoff.initial.clamped, .milliseconds(1)),
      multiplier: backoff.multiplier,
      maximum: backoff.maximum,
      jitter: backoff.jitter,
      minimumAttempt: self.connectTimeout
    )
  }

  func report(_ event: @autoclosure () -> ChannelEvent) {
    guard let observer = self.configuration.observer else { return }
    observer.channel(to: self.origin, did: event())
  }
}

extension Origin {
  /// The origin, or a cluster of it, for messages.
  package func place(of cluster: String?) -> String {
    cluster.map { "the cluster \"\($0)\" of \(self)" } ?? self.description
  }
}

/// Bounds for the connections to each address.
package struct ConnectionLimits: Sendable {
  package var http1Connections: Int
  package var http2Connections: Int
  /// Calls that may wait besides those for which connections are being opened.
  package var waitingCalls: Int
  /// How long a connection without calls stays; from 100 years on, forever.
  package var idleTimeout: Duration

  package init(
    http1Connections: Int = 100,
    http2Connections: Int = 4,
    waitingCalls: Int = 100_000,
    idleTimeout: Duration = .seconds(60)
  ) {
    self.http1Connections = max(http1Connections, 1)
    self.http2Connections = max(http2Connections, 1)
    self.waitingCalls = max(waitingCalls, 0)
    self.idleTimeout = max(idleTimeout.clamped, .zero)
  }
}
