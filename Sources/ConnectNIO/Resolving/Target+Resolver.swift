internal import Connect
public import ConnectChannels

extension Target {
  /// The resolver of this target. It finds the target, whatever the origin that calls go to; the origin still gives the scheme
  /// and the name that TLS verifies.
  ///
  /// Targets of the scheme `xds` fail with `failed_precondition`: the module `ConnectXDS` has their resolver.
  ///
  /// ```swift
  /// configuration.channel.resolver = try Target("srv:_grpc._tcp.example.com").resolver
  /// ```
  public var resolver: any NameResolver {
    switch self {
    case .url(let host, _):
      return FixedNameResolver(name: host, resolver: SystemResolver())
    case .dns(let host, let server):
      let nameServers = server.map { ResolverConfiguration(servers: [$0]) }
      return FixedNameResolver(name: host, resolver: DNSResolver(.init(nameServers: nameServers)))
    case .service(let name):
      return DNSResolver.service(name)
    case .addresses(let addresses):
      return StaticResolver(addresses.map { Endpoint($0) })
    case .unix(let path):
      return StaticResolver([Endpoint(.unix(path: path))])
    case .unixAbstract(let name):
      return StaticResolver([Endpoint(.unixAbstract(name: name))])
    case .vsock(let cid, let port):
      return StaticResolver([Endpoint(.vsock(cid: cid, port: port))])
    case .xds:
      return UnknownResolver(target: self)
    }
  }
}

/// Says who finds a target that this module does not find.
private struct UnknownResolver: NameResolver {
  let target: Target

  var mayBringServiceConfig: Bool { false }

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let message = """
      the target \(self.target) needs a control plane; add the product ConnectXDS, and use \
      configuration.resolve(through: XDSClient(…), target: "\(self.target)")
      """
    report(.failure(ConnectError(code: .failedPrecondition, message: message)))
    return StaticResolver([]).watch(origin, on: executor) { _ in }
  }
}

/// Resolves one name for all origins. HTTPS records of that name say nothing of an origin, and are not looked for.
private struct FixedNameResolver: NameResolver {
  let name: HostAndPort
  let resolver: any NameResolver

  var mayBringServiceConfig: Bool { self.resolver.mayBringServiceConfig }

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let scheme = origin.scheme.isTCP ? origin.scheme : .http
    let named = Origin(scheme: scheme, host: self.name.host, port: self.name.port)
    return self.resolver.watch(named, on: executor, report)
  }
}
