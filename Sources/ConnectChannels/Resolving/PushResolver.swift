public import Connect
internal import Synchronization

/// Endpoints that the program gives, and may change at any time. Use it for your own service discovery, and in tests.
///
/// It gives the same endpoints to all origins that use it.
public final class PushResolver: NameResolver {
  private typealias Report = @Sendable (Result<ResolverUpdate, ConnectError>) -> Void

  private struct State {
    var latest: Result<ResolverUpdate, ConnectError>?
    /// In the order in which they came.
    var reports: [(number: Int, report: Report)] = []
    var nextWatch = 0
    /// Counts the answers.
    var version = 0
  }

  private let state = Mutex(State())
  private let onRequest: (@Sendable () -> Void)?

  /// A resolver without an answer: calls wait until there is one.
  ///
  /// - Parameter onRequest: Called when a channel finds that the addresses may be out of date.
  public init(onRequest: (@Sendable () -> Void)? = nil) {
    self.onRequest = onRequest
  }

  /// The endpoints are these from now on. May be called from any thread.
  public func update(_ endpoints: [Endpoint], serviceConfig: String? = nil) {
    self.update(ResolverUpdate(endpoints: endpoints, serviceConfig: serviceConfig))
  }

  /// The routes and clusters are these from now on. May be called from any thread.
  public func update(_ routing: Routing, serviceConfig: String? = nil) {
    self.update(ResolverUpdate(endpoints: [], serviceConfig: serviceConfig, routing: routing))
  }

  /// The answer is this from now on. May be called from any thread.
  public func update(_ answer: ResolverUpdate) {
    self.publish(.success(answer))
  }

  /// The source of the endpoints has failed. Channels keep the last ones.
  public func fail(_ error: ConnectError) {
    self.publish(.failure(error))
  }

  private func publish(_ answer: Result<ResolverUpdate, ConnectError>) {
    let (reports, version) = self.state.withLock { state in
      // A failure does not take the place of what is known, for channels that come later.
      if case .failure = answer, case .success = state.latest {} else { state.latest = answer }
      state.version += 1
      return (state.reports.map(\.report), state.version)
    }
    for report in reports { self.deliver(answer, version, to: report) }
  }

  /// Reports an answer, then newer ones that have come meanwhile from other threads, so that the newest is reported
  /// last.
  private func deliver(_ answer: Result<ResolverUpdate, ConnectError>, _ version: Int, to report: Report) {
    var (answer, version) = (answer, version)
    while true {
      report(answer)
      let newer = self.state.withLock { state in
        state.version == version ? nil : state.latest.map { ($0, state.version) }
      }
      guard let newer else { return }
      (answer, version) = newer
    }
  }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let (number, latest, version) = self.state.withLock { state in
      let number = state.nextWatch
      state.nextWatch += 1
      state.reports.append((number, report))
      return (number, state.latest, state.version)
    }
    if let latest { self.deliver(latest, version, to: report) }
    return ClosureWatch(
      onRequest: self.onRequest ?? {},
      onCancel: { self.state.withLock { $0.reports.removeAll { $0.number == number } } }
    )
  }
}
