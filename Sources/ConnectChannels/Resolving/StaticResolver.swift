public import Connect

/// A resolver with one answer that never changes.
public struct StaticResolver: NameResolver {
  private let answer: ResolverUpdate

  /// A resolver for these endpoints.
  ///
  /// - Parameters:
  ///   - endpoints: One for each server. An empty list means that the name resolves to nothing.
  ///   - serviceConfig: gRPC's service config as JSON; nil for none.
  public init(_ endpoints: [Endpoint], serviceConfig: String? = nil) {
    self.answer = ResolverUpdate(endpoints: endpoints, serviceConfig: serviceConfig)
  }

  /// Whether the answer has a service config.
  public var mayBringServiceConfig: Bool { self.answer.serviceConfig != nil }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    report(.success(self.answer))
    return ClosureWatch()
  }
}
