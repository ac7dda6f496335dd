public import Connect

/// Asks a source that knows the endpoints at the time of asking, as DNS does: at the start, when an answer's time to live is
/// over, when connections fail (at most every 30 s), and after a failure with gRPC's backoff (1 s times 1.6 up to 120 s,
/// with a jitter of 20 %).
///
/// ```swift
/// let resolver = PollingResolver { origin, _, report in
///   registry.lookUp(origin.host) { addresses in
///     report(.success(ResolverUpdate(endpoints: addresses.map(Endpoint.init), timeToLive: .seconds(60))))
///   }
/// }
/// ```
public struct PollingResolver: Resolver {
  /// Looks once. The closure that it is given is called once, from any thread.
  public typealias Look =
    @Sendable (
      _ origin: Origin,
      _ executor: any CallExecutor,
      _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
    ) -> Void

  private let configuration: ResolutionSchedule<ResolverUpdate>.Configuration
  private let look: Look

  /// - Parameter minimumInterval: The least time between two looks that failing connections ask for.
  public init(minimumInterval: Duration = .seconds(30), _ look: @escaping Look) {
    var configuration = ResolutionSchedule<ResolverUpdate>.Configuration()
    configuration.minimumInterval = max(minimumInterval.clamped, .zero)
    self.configuration = configuration
    self.look = look
  }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let watch = PollingWatch(origin, on: executor, self.configuration, look: self.look, report: report)
    watch.start()
    return watch
  }
}

/// Runs a ``ResolutionSchedule``.
///
/// `@unchecked Sendable`: what changes is touched on `executor` alone.
private final class PollingWatch: ResolverWatch, @unchecked Sendable {
  private typealias Schedule = ResolutionSchedule<ResolverUpdate>

  private let origin: Origin
  private let executor: any CallExecutor
  private let look: PollingResolver.Look
  private let report: @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  private var schedule: Schedule
  private var random = SplitMix64(seed: .random(in: .min ... .max))
  private var timer: (any CallTimer)?

  init(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ configuration: ResolutionSchedule<ResolverUpdate>.Configuration,
    look: @escaping PollingResolver.Look,
    report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) {
    self.origin = origin
    self.executor = executor
    self.schedule = ResolutionSchedule(configuration)
    self.look = look
    self.report = report
  }

  func start() { self.run(self.schedule.start(now: self.executor.now)) }

  func resolveAgain() { self.run(self.schedule.request(now: self.executor.now)) }

  func cancel() { self.run(self.schedule.stop()) }

  private func run(_ actions: [Schedule.Action]) {
    for action in actions {
      switch action {
      case .resolve:
        self.look(self.origin, self.executor) { answer in
          self.executor.execute { self.finished(answer) }
        }
      case .wake(let time):
        self.timer?.cancel()
        self.timer = self.executor.schedule(after: max(time - self.executor.now, .zero)) { [weak self] in
          guard let self else { return }
          self.timer = nil
          self.run(self.schedule.wake(now: self.executor.now))
        }
      case .cancelWake:
        self.timer?.cancel()
        self.timer = nil
      case .publish(let update):
        self.report(.success(update))
      case .publishFailure(let error), .keep(_, let error):
        self.report(.failure(ConnectError(error, code: .unavailable)))
      }
    }
  }

  private func finished(_ answer: Result<ResolverUpdate, ConnectError>) {
    let now = self.executor.now
    switch answer {
    case .success(let update):
      self.run(self.schedule.succeeded(update, timeToLive: update.timeToLive, now: now))
    case .failure(let error):
      self.run(self.schedule.failed(error, now: now, random: self.random.fraction()))
    }
  }
}
