public import Connect

/// Tries interceptors in thousands of schedules: orders of work, answers of the server, cancellations, deadlines, retries of
/// other interceptors. It finds the shortest schedule that breaks a rule, and tells what happens in it.
///
/// ```swift
/// func testTokenInterceptor() async throws {
///   try await InterceptorExplorer { world in
///     let store = TokenStore {
///       try await world.step("token endpoint")
///       return world.token()
///     }
///     return Subject(observing: store) { _ in TokenInterceptor(store: store) }
///   }
///   .calls(2)
///   .server(.answers(.ok, .unauthenticated, .unavailable))
///   .check("one refresh") { run in run.subject.refreshes <= 1 }
///   .explore()
/// }
/// ```
///
/// In each schedule, a real `ProtocolClient` makes calls to a server of the explorer, all on one thread and in
/// virtual time. Whatever could happen in another order is a choice. Schedules are the same in each run of a test.
///
/// Rules for all interceptors hold without being asked for; ``allowing(_:)`` lifts those that an interceptor breaks on
/// purpose. A failed exploration throws an ``ExplorationFailure``, in XCTest and in Swift Testing alike. Its description
/// has the story and a test that runs the schedule again.
///
/// Tasks that the code under test makes are part of the schedule, and so is `Task.sleep`, which takes no real time. Not part
/// of it are:
///
/// - What runs on other threads, such as queues of Dispatch. It is waited for a short time (``patience(_:)``), and its order
///   is left to chance. The report tells of it.
/// - `Task.sleep` and `Task.yield` that are called in an actor's function by a task without an executor of its own: the
///   runtime takes these to its pool, and what follows in that function runs there, in real time, as on any other thread.
/// - `Task.sleep` with another compiler than Swift 6.3. The report tells of it. ``ExplorerWorld/clock`` is not affected.
/// - Real clocks. Code that reads the time should take a clock.
///
/// Code that sleeps until a moment of a real clock sleeps for what is left of the time, without what the computer needed for the
/// current piece of work: as long as its delay was, if the delay is a number of milliseconds and was added to the time just before.
/// On a busy computer, a delay of few milliseconds may be taken for another one. ``ExplorerWorld/clock`` is exact.
///
/// Code under test must not block the thread, nor loop without suspensions, as `Task.sleep` does in a loop of a cancelled task. The
/// exploration ends with an ``ExplorationFailure`` then (``hanging(after:)``), but its thread is lost.
public struct InterceptorExplorer<Observed: Sendable>: Sendable {
  /// Makes what is explored. Called each time that a schedule runs.
  public typealias Build = @Sendable (ExplorerWorld) throws -> Subject<Observed>

  let build: Build
  var settings = ExplorerSettings()
  var checks: [ExplorerCheck<Observed>] = []

  /// An explorer of one unary call at a time, with 1,000 schedules.
  ///
  /// - Parameter build: Makes the interceptors and all state that they share. Called each time that a schedule
  ///   runs, on the thread of the exploration. What it throws ends the exploration.
  public init(_ build: @escaping Build) {
    self.build = build
  }
}

extension InterceptorExplorer where Observed == Void {
  /// An explorer of one interceptor without shared state.
  public init(of factory: @escaping InterceptorFactory) {
    self.init(of: [factory])
  }

  /// An explorer of a chain of interceptors without shared state, outermost first.
  public init(of factories: [InterceptorFactory]) {
    self.init { _ in Subject(interceptors: factories) }
  }
}

// MARK: - Settings

extension InterceptorExplorer {
  /// How many calls a schedule makes: 1 to 4. Some begin while others run, some after. 1 by default.
  public func calls(_ count: Int) -> Self {
    self.with { $0.callCount = min(max(count, 1), 4) }
  }

  /// What kinds of methods are called; `StreamType.unary` alone by default. Each kind gets its share of the
  /// schedules.
  public func methods(_ methods: [StreamType]) -> Self {
    self.with { $0.methods = methods.isEmpty ? [.unary] : methods }
  }

  /// Whether the methods have no side effects (`IdempotencyLevel.noSideEffects`). By default nothing is known.
  public func idempotency(_ level: IdempotencyLevel) -> Self {
    self.with { $0.idempotency = level }
  }

  /// What the server may answer. By default ok, `unavailable`, or headers and then nothing.
  public func server(_ server: ExplorerServer) -> Self {
    self.with { $0.server = server }
  }

  /// What each caller sends, by the call's number (from 1). By default the calls have different texts and no headers of their
  /// own. In streams, the text is followed by the number of the message.
  ///
  /// Each request also has the header `x-canary`, by which it is known when it leaks into another call. Requests that are equal
  /// have equal canaries.
  ///
  /// - Parameter request: The text of the request's message and the request's headers.
  public func requests(_ request: @escaping @Sendable (_ call: Int) -> (text: String, headers: Headers))
    -> Self
  {
    self.with { $0.request = request }
  }

  /// Changes the options of each call, by its number (from 1): its context, or interceptors of its own. Headers are those of
  /// ``requests(_:)``. Timeout, the deadline of the context, compression and formats of messages are the explorer's. Its other interceptors (``neighbours(_:)``) stand
  /// outside of a call's own ones.
  public func options(_ change: @escaping @Sendable (_ call: Int, inout CallOptions) -> Void) -> Self {
    self.with { $0.optionChanges.append(change) }
  }

  /// Changes the client's configuration, for example its limits. Interceptors, host, protocol, compression, formats of messages and
  /// logger are the explorer's.
  /// A timeout of the configuration is that of most calls; others have a minute more. Timeouts above ten years count as ten years. Without one
  /// they have 60 seconds, or none.
  public func configuration(_ change: @escaping @Sendable (inout ProtocolClientConfig) -> Void) -> Self {
    self.with { $0.changeConfig = change }
  }

  /// Whether other interceptors of the chain, which are the explorer's, sometimes retry, fail or hold a request. They do by
  /// default.
  public func neighbours(_ areThere: Bool) -> Self {
    self.with { $0.hasNeighbours = areThere }
  }

  /// What the interceptors do on purpose. Adds to what was allowed before.
  public func allowing(_ allowance: ExplorationAllowance...) -> Self {
    self.with { for item in allowance { $0.allowance.formUnion(item) } }
  }

  /// How many schedules are tried; 1,000 by default, at least 1.
  public func schedules(_ count: Int) -> Self {
    self.with { $0.scheduleCount = max(count, 1) }
  }

  /// The seed of the random schedules; 1 by default. The same seed gives the same schedules.
  public func seed(_ seed: UInt64) -> Self {
    self.with { $0.seed = seed }
  }

  /// How long the explorer waits in real time for other threads, when nothing else is left to do. 50 milliseconds by default.
  public func patience(_ patience: Duration) -> Self {
    self.with { $0.patience = max(patience, .zero) }
  }

  /// How long code under test may keep the thread without a pause, in real time, before the exploration fails. 10 seconds by default;
  /// longer ones are for code that computes much. It counts for the closure that builds the subject and for rules of the test, too.
  public func hanging(after limit: Duration) -> Self {
    self.with { $0.hangLimit = max(limit, .milliseconds(10)) }
  }

  /// Does not print what was covered.
  public func quiet() -> Self {
    self.with { $0.isQuiet = true }
  }

  /// A rule of the test, which must hold at the end of each schedule.
  ///
  /// - Parameters:
  ///   - name: What the failure calls it.
  ///   - holds: Whether the rule holds. Throwing means that it does not.
  public func check(
    _ name: String,
    _ holds: @escaping @Sendable (ExplorationRun<Observed>) throws -> Bool
  ) -> Self {
    var copy = self
    copy.checks.append(ExplorerCheck(name: name, holds: holds))
    return copy
  }

  private func with(_ change: (inout ExplorerSettings) -> Void) -> Self {
    var copy = self
    change(&copy.settings)
    return copy
  }
}

/// A rule of a test.
struct ExplorerCheck<Observed: Sendable>: Sendable {
  let name: String
  let holds: @Sendable (ExplorationRun<Observed>) throws -> Bool
}
