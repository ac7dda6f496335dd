public import Connect
public import ConnectChannels

extension XDSClient {
  /// Finds the routes, clusters and servers of a target through this client. It keeps the client alive while channels use it.
  ///
  /// ```swift
  /// configuration.channel.resolver = try xds.resolver(for: "xds:///orders")
  /// ```
  ///
  /// For TLS of clusters use `NIOHTTPClient.Configuration.resolve(through:target:)`.
  ///
  /// - Calls wait until all of the target's resources are known (gRFC A74). Later, a change is used once all that it needs is
  ///   known. A cluster that does not exist fails the calls to it alone.
  /// - A target that has no routes fails its calls with `unavailable`, and says why.
  ///
  /// - Parameter target: `xds:///NAME`, or `xds://AUTHORITY/NAME` for an authority of the bootstrap (gRFC A47). The part of NAME
  ///   behind its last slash chooses the virtual host.
  /// - Throws: `ConnectError` with `invalid_argument` if it is no such target, or if the bootstrap does not know the authority.
  public func resolver(for target: String) throws(ConnectError) -> any NameResolver {
    let parsed: Target
    do throws(TargetError) {
      parsed = try Target(target)
    } catch {
      throw ConnectError(code: .invalidArgument, message: error.description, exception: error)
    }
    guard case .xds(let authority, let name) = parsed else {
      throw ConnectError(
        code: .invalidArgument,
        message:
          "the target \(target) needs no control plane; write xds:///NAME, or use Target(\"\(target)\").resolver"
      )
    }
    let listener = try ListenerName(authority: authority, name: name, self.bootstrap)
    return XDSResolver(owner: self, targets: self.targets, target: listener)
  }

  /// The targets that are watched through this client.
  var targets: XDSTargets {
    let here = WeakClient(self)
    return self.companions.companion {
      let executor = self.executor
      let random = SeededRandom(seed: self.companionSeed)
      let reporters = LoadReporters(self.bootstrap.node.message, on: executor, random: random) {
        server,
        handle in
        guard let client = try? here.client?.protocolClient(for: server) else {
          return EndedLoadReportCall(on: executor, handle)
        }
        return LoadReportCall(client, on: executor, handle)
      }
      let environment = DependencyWatch.Environment(
        executor: executor,
        source: here,
        resolver: self.names,
        server: { here.client?.server(of: .cluster, $0) }
      )
      return XDSTargets(environment, reporters: reporters)
    }
  }
}

/// A client that is not kept alive: its companions belong to it.
private final class WeakClient: ResourceSource, Sendable {
  private final class NoWatch: ResourceWatch {
    func cancel() {}
  }

  private struct Reference: Sendable {
    weak let client: XDSClient?
  }

  private let reference: Reference

  init(_ client: XDSClient) {
    self.reference = Reference(client: client)
  }

  var client: XDSClient? { self.reference.client }

  func watch(
    _ type: ResourceType,
    _ name: String,
    _ report: @escaping @Sendable (ResourceState) -> Void
  ) -> any ResourceWatch {
    self.client?.watch(type, name, report) ?? NoWatch()
  }
}
