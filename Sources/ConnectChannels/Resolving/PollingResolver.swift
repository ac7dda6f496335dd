public import Connect

/// Finds endpoints in a source that has to be asked, such as DNS. It asks:
///
/// - at the start, and when an answer's time to live is over
/// - when connections fail, at most every 30 s
/// - after a failure or an answer without endpoints, with gRPC's backoff (1 s times 1.6 up to 120 s, with a jitter of
///   20 %)
///
/// Each watch has at most one lookup in flight: a lookup that never ends keeps the next one from starting.
///
/// ```swift
/// let resolver = PollingResolver { origin, _, report in
///   registry.lookUp(origin.host) { addresses in
///     report(.success(ResolverUpdate(endpoints: addresses.map(Endpoint.init), timeToLive: .seconds(60))))
///   }
/// }
/// ```
public struct PollingResolver: NameResolver {
  /// Makes one lookup. It calls its closure once, from any thread.
  public typealias Look =
    @Sendable (
      _ origin: Origin,
      _ executor: any CallExecutor,
      _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
    ) -> Void

  /// Stops a lookup whose answer is not wanted any more, and any work that is left after its answer. Called once, on the
  /// executor.
  package typealias Cancellation = @Sendable () -> Void
  /// As ``Look``, called on the executor.
  package typealias CancellableLook =
    @Sendable (
      _ origin: Origin,
      _ executor: any CallExecutor,
      _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
    ) -> Cancellation?

  private let configuration: ResolutionSchedule<ResolverUpdate>.Configuration
  private let seed: UInt64?
  private let look: CancellableLook

  /// A resolver that calls `look` for each answer.
  ///
  /// - Parameters:
  ///   - minimumInterval: The least time between two lookups that failing connections ask for.
  ///   - seed: Determines the jitter of each watch, for tests that have to run the same way each time. With nil, the
  ///     default, each watch has a different jitter.
  ///   - look: Asks the source once. Called on the channel's executor, which it must not block.
  public init(minimumInterval: Duration = .seconds(30), seed: UInt64? = nil, _ look: @escaping Look) {
    self.init(
      minimumInterval: minimumInterval,
      seed: seed,
      cancellable: { origin, executor, report in
        look(origin, executor, report)
        return nil
      }
    )
  }

  package init(minimumInterval: Duration, seed: UInt64? = nil, cancellable look: @escaping CancellableLook) {
    var configuration = ResolutionSchedule<ResolverUpdate>.Configuration()
    configuration.minimumInterval = max(minimumInterval.clamped, .zero)
    self.configuration = configuration
    self.seed = seed
    self.look = look
  }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let random = self.seed.map(SeededRandom.init(seed:)) ?? .system()
    let watch = PollingWatch(
      origin,
      on: executor,
      self.configuration,
      random,
      look: self.look,
      report: report
    )
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
  private let look: PollingResolver.CancellableLook
  private let report: @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  private var schedule: Schedule
  private var random: SeededRandom
  private var timer: (any CallTimer)?
  /// How many looks have begun. Only the answer of the last one counts.
  private var looks = 0
  private var cancelLook: PollingResolver.Cancellation?

  init(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ configuration: ResolutionSchedule<ResolverUpdate>.Configuration,
    _ random: SeededRandom,
    look: @escaping PollingResolver.CancellableLook,
    report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) {
    self.origin = origin
    self.executor = executor
    self.schedule = ResolutionSchedule(configuration)
    self.random = random
    self.look = look
    self.report = report
  }

  func start() { self.run(self.schedule.start(now: self.executor.now)) }

  func resolveAgain() { self.run(self.schedule.request(now: self.executor.now)) }

  func cancel() {
    self.run(self.schedule.stop())
    self.cancelLook.take()?()
  }

  private func run(_ actions: [Schedule.Action]) {
    // Reports come last: they may call this watch again.
    var reports: [Result<ResolverUpdate, ConnectError>] = []
    for action in actions {
      switch action {
      case .resolve:
        self.looks += 1
        let number = self.looks
        self.cancelLook.take()?()
        self.cancelLook = self.look(self.origin, self.executor) { [weak self] answer in
          guard let self else { return }
          self.executor.execute { self.finished(number, answer) }
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
        reports.append(.success(update))
      case .publishFailure(let error), .keep(_, let error):
        reports.append(.failure(ConnectError(error, code: .unavailable)))
      }
    }
    for report in reports { self.report(report) }
  }

  private func finished(_ number: Int, _ answer: Result<ResolverUpdate, ConnectError>) {
    guard number == self.looks else { return }
    let now = self.executor.now
    let random = self.random.fraction()
    switch answer {
    case .success(let update):
      self.run(
        self.schedule.succeeded(
          update,
          isEmpty: update.endpoints.isEmpty,
          timeToLive: update.timeToLive,
          now: now,
          random: random
        )
      )
    case .failure(let error):
      self.run(self.schedule.failed(error, now: now, random: random))
    }
  }
}
