public import Connect
public import Logging
public import NIOCore
internal import NIOPosix
internal import Synchronization

/// HTTP/1.1 and HTTP/2 over sockets, on SwiftNIO: `http://host:port`, `https://host:port`, `unix:/path`.
///
/// ```swift
/// let client = NIOHTTPClient()
/// defer { await client.shutdown() }
/// ```
///
/// Nothing needs to be started: the first call to an origin connects. One client serves any number of origins
/// and of `ProtocolClient`s, and shares connections among them. A client that is dropped without
/// ``shutdown(within:)`` closes its connections as soon as they have no calls.
public final class NIOHTTPClient: HTTPClientInterface, Sendable {
  private struct EndpointKey: Hashable {
    var origin: Origin
    var eventLoop: ObjectIdentifier
  }

  private struct State {
    var isShutDown = false
    var endpoints: [EndpointKey: NIOEndpoint] = [:]
    /// The first endpoint of each origin, which all get who ask for no particular event loop.
    var sharedEndpoints: [Origin: NIOEndpoint] = [:]
    var executors: [ObjectIdentifier: EventLoopExecutor] = [:]
  }

  private let configuration: Configuration
  private let eventLoopGroup: any EventLoopGroup
  private let logger: Logger
  private let tlsContexts: TLSContextProvider
  private let state = Mutex(State())

  /// - Parameters:
  ///   - eventLoopGroup: Where connections and calls live. By default the group that the process shares, which
  ///     is never shut down. A group of your own has to outlive the client's ``shutdown(within:)``.
  ///   - logger: Gets what happens to connections, at level `debug`. By default nothing is logged.
  public init(
    configuration: Configuration = .defaults,
    eventLoopGroup: (any EventLoopGroup)? = nil,
    logger: Logger? = nil
  ) {
    self.configuration = configuration
    self.eventLoopGroup = eventLoopGroup ?? MultiThreadedEventLoopGroup.singleton
    self.logger = logger ?? Logger(label: "connect.http", factory: { _ in SwiftLogNoOpLogHandler() })
    self.tlsContexts = TLSContextProvider(configuration)
  }

  deinit {
    let endpoints = self.state.withLock { $0.isShutDown ? [] : Array($0.endpoints.values) }
    for endpoint in endpoints { endpoint.closeWhenIdle() }
  }

  /// The endpoint of `origin`, which all `ProtocolClient`s share. The loops of the group take turns with origins;
  /// with `executor`, the endpoint is one on that executor's loop.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument` if `origin` is no possible address, or `executor` did
  ///   not come from an endpoint of a `NIOHTTPClient`.
  public func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?
  ) throws(ConnectError) -> any HTTPEndpoint {
    try origin.checkAddress()
    let eventLoop: (any EventLoop)?
    if let executor {
      guard let executor = executor as? EventLoopExecutor else {
        throw ConnectError(
          code: .invalidArgument,
          message: "the executor is not one of a NIOHTTPClient"
        )
      }
      eventLoop = executor.eventLoop
    } else {
      eventLoop = nil
    }
    let (endpoint, isShutDown) = self.state.withLock { state in
      if eventLoop == nil, let endpoint = state.sharedEndpoints[origin] { return (endpoint, false) }
      let eventLoop = eventLoop ?? self.eventLoopGroup.next()
      let loopID = ObjectIdentifier(eventLoop)
      let key = EndpointKey(origin: origin, eventLoop: loopID)
      if let endpoint = state.endpoints[key] { return (endpoint, false) }
      let executor = state.executors[loopID] ?? EventLoopExecutor(eventLoop)
      let endpoint = NIOEndpoint(
        origin: origin,
        executor: executor,
        connector: Connector(
          origin: origin,
          configuration: self.configuration,
          tlsContexts: self.tlsContexts,
          logger: self.logger
        ),
        configuration: self.configuration,
        logger: self.logger
      )
      state.executors[loopID] = executor
      state.endpoints[key] = endpoint
      if state.sharedEndpoints[origin] == nil { state.sharedEndpoints[origin] = endpoint }
      return (endpoint, state.isShutDown)
    }
    if isShutDown { _ = endpoint.shutDown(within: .zero) }
    return endpoint
  }

  /// Ends the client. New calls fail with `unavailable` from now on, those under way may finish, and then all
  /// connections are closed. What has not finished after `limit` fails with `unavailable`.
  ///
  /// Returns once no connection is left. May be called more than once; the shortest limit counts.
  public func shutdown(within limit: Duration = .seconds(30)) async {
    let endpoints = self.state.withLock { state in
      state.isShutDown = true
      return Array(state.endpoints.values)
    }
    let ends = endpoints.map { $0.shutDown(within: limit) }
    for end in ends {
      // It never fails.
      _ = try? await end.get()
    }
  }
}

extension Origin {
  fileprivate func checkAddress() throws(ConnectError) {
    switch self.scheme {
    case .http, .https:
      guard !self.host.isEmpty, !self.host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) else {
        throw ConnectError(code: .invalidArgument, message: "'\(self.host)' is not the name of a host")
      }
      guard (1...65_535).contains(self.port) else {
        throw ConnectError(code: .invalidArgument, message: "\(self.port) is not a TCP port")
      }
    case .unix:
      // `sockaddr_un` holds 107 bytes and a NUL.
      guard (1...107).contains(self.host.utf8.count), !self.host.utf8.contains(0) else {
        throw ConnectError(
          code: .invalidArgument,
          message: "the path of a Unix domain socket has 1 to 107 bytes, not \(self.host.utf8.count)"
        )
      }
    }
  }
}
