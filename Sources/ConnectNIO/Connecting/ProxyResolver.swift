internal import Connect
internal import ConnectChannels

/// Finds the addresses of the proxy on the way to an origin.
struct ProxyResolver: NameResolver {
  private let route: ProxyRoute
  private let resolver: any NameResolver

  /// - Parameter resolver: What finds the addresses of the proxy's name.
  init(_ route: ProxyRoute, asking resolver: any NameResolver) {
    self.route = route
    self.resolver = resolver
  }

  var mayBringServiceConfig: Bool { false }

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let address = self.route.proxy.address
    let proxy = Origin(scheme: .http, host: address.host, port: address.port)
    let route = self.route
    return self.resolver.watch(proxy, on: executor) { answer in
      report(
        answer
          .map { update in
            var update = update
            // A rule for the proxy's name is none for the server's.
            update.serviceConfig = nil
            return update
          }
          .mapError { route.notFound($0) }
      )
    }
  }
}
