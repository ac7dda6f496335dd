internal import Connect
internal import ConnectChannels
internal import ConnectNIO
public import Logging
public import NIOCore
internal import NIOPosix
internal import Synchronization

extension XDSClient {
  /// A client with connections of its own to the control planes, as the bootstrap says (gRFC A27, A65).
  ///
  /// - Parameters:
  ///   - bootstrap: Where control planes are, and who this client is.
  ///   - eventLoopGroup: Where the client and its connections live: by default the group that the process shares. A group of
  ///     your own has to live as long as the client.
  ///   - logger: Logs what control planes send that cannot be used, and their failures. By default nothing is logged.
  public convenience init(
    bootstrap: XDSBootstrap,
    eventLoopGroup: (any EventLoopGroup)? = nil,
    logger: Logger = Logger(label: "connect.xds", factory: { _ in SwiftLogNoOpLogHandler() })
  ) {
    let group = eventLoopGroup ?? MultiThreadedEventLoopGroup.singleton
    let transports = ControlPlaneTransports(on: group, logger: logger)
    self.init(bootstrap: bootstrap, on: EventLoopExecutor(group.next()), logger: logger) { server in
      transports.transport(to: server)
    }
  }
}

/// A transport for each control plane.
private final class ControlPlaneTransports: Sendable {
  private let transports = Mutex<[XDSBootstrap.Server: NIOHTTPClient]>([:])
  private let group: any EventLoopGroup
  private let logger: Logger

  init(on group: any EventLoopGroup, logger: Logger) {
    self.group = group
    self.logger = logger
  }

  func transport(to server: XDSBootstrap.Server) -> NIOHTTPClient {
    self.transports.withLock { transports in
      if let transport = transports[server] { return transport }
      let transport = NIOHTTPClient(
        configuration: server.configuration,
        eventLoopGroup: self.group,
        logger: self.logger
      )
      transports[server] = transport
      return transport
    }
  }
}

extension XDSBootstrap.Server {
  var configuration: NIOHTTPClient.Configuration {
    var configuration = NIOHTTPClient.Configuration(version: .http2Only)
    // A stream may be silent for hours. The interval is that of gRPC for control planes.
    configuration.http2.keepalive = .init(interval: .seconds(300))
    guard case .tls(let roots, let identity, let refreshInterval) = self.credentials else {
      return configuration
    }
    if let roots { configuration.tls.trustRoots = .pemFile(roots) }
    configuration.tls.clientCertificate = identity.map {
      .pemFiles(chain: $0.certificates, privateKey: $0.key)
    }
    configuration.tls.fileCheckInterval = refreshInterval
    return configuration
  }
}
