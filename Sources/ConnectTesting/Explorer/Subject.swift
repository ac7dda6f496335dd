public import Connect

/// What an ``InterceptorExplorer`` explores: interceptors, and what a test observes of their shared state.
public struct Subject<Observed: Sendable>: Sendable {
  let observed: Observed
  let factories: [InterceptorFactory]

  /// A chain of interceptors, outermost first.
  ///
  /// - Parameters:
  ///   - observed: The state that the interceptors share, or anything else for the rules of the test
  ///     (``ExplorationRun/subject``).
  ///   - factories: As `ProtocolClientConfig.interceptors`.
  public init(observing observed: Observed, interceptors factories: [InterceptorFactory]) {
    self.observed = observed
    self.factories = factories
  }

  /// One interceptor.
  public init(observing observed: Observed, _ factory: @escaping InterceptorFactory) {
    self.init(observing: observed, interceptors: [factory])
  }
}

extension Subject where Observed == Void {
  /// A chain of interceptors, outermost first, of which the test observes nothing but the calls.
  public init(interceptors factories: [InterceptorFactory]) {
    self.init(observing: (), interceptors: factories)
  }

  /// One interceptor, of which the test observes nothing but the calls.
  public init(_ factory: @escaping InterceptorFactory) {
    self.init(observing: (), interceptors: [factory])
  }
}
