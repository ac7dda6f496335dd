public import Connect
internal import Synchronization

/// Endpoints that the program gives, and may change at any time. Use it for your own service discovery, and in tests.
///
/// It gives the same endpoints to all origins that use it.
public final class PushResolver: NameResolver {
  private typealias Report = @Sendable (Result<ResolverUpdate, ConnectError>) -> Void

  private struct State {
    var latest: Result<ResolverUpdate, ConnectError>?
    var reports: [Int: Report] = [:]
    var nextWatch = 0
  }

  private let state = Mutex(State())
  private let onRequest: (@Sendable () -> Void)?

  /// - Parameter onRequest: Called when a channel finds that the addresses may be out of date.
  public init(onRequest: (@Sendable () -> Void)? = nil) {
    self.onRequest = onRequest
  }

  /// The endpoints are these from now on. May be called from any thread.
  public func update(_ endpoints: [Endpoint], serviceConfig: String? = nil) {
    self.publish(.success(ResolverUpdate(endpoints: endpoints, serviceConfig: serviceConfig)))
  }

  /// The source of the endpoints has failed. Channels keep the last ones.
  public func fail(_ error: ConnectError) {
    self.publish(.failure(error))
  }

  private func publish(_ answer: Result<ResolverUpdate, ConnectError>) {
    let reports = self.state.withLock { state in
      // A failure does not take the place of what is known, for channels that come later.
      if case .failure = answer, case .success = state.latest {} else { state.latest = answer }
      return Array(state.reports.values)
    }
    for report in reports { report(answer) }
  }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let (number, latest) = self.state.withLock { state in
      let number = state.nextWatch
      state.nextWatch += 1
      state.reports[number] = report
      return (number, state.latest)
    }
    if let latest { report(latest) }
    return Watch(self, number)
  }

  private final class Watch: ResolverWatch {
    private let resolver: PushResolver
    private let number: Int

    init(_ resolver: PushResolver, _ number: Int) {
      self.resolver = resolver
      self.number = number
    }

    func resolveAgain() { self.resolver.onRequest?() }

    func cancel() {
      _ = self.resolver.state.withLock { $0.reports.removeValue(forKey: self.number) }
    }
  }
}
