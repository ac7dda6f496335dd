import Connect
import ConnectTesting
import XCTest

/// Deadlines, and what still waits when calls are over.
final class ExplorerDeadlineTests: XCTestCase {
  // MARK: Deadlines

  func testATimeoutOfTheConfigurationIsADeadline() async throws {
    try await InterceptorExplorer(of: { _ in PassingInterceptor() })
      .calls(2)
      .configuration { $0.timeout = .seconds(5) }
      .server(.answers(.ok, .headersThenNothing, .nothing))
      .check("each call has a deadline") { run in
        run.calls.allSatisfy { $0.deadline != nil }
          && run.calls.contains { $0.deadline == $0.startTime + .seconds(5) || $0.number == 1 }
      }
      .quiet()
      .explore()
  }

  func testADeadlineThatHasNotPassedIsNoReason() async throws {
    let explorer = InterceptorExplorer(of: { _ in
      HookedInterceptor {
        UnaryFunction(responseFunction: { response, proceed in
          let error = ConnectError(code: .deadlineExceeded, message: "it took too long")
          proceed(response.code == .unavailable ? HTTPResponse(error: error) : response)
        })
      }
    })
    try await self.expect("calls end at their deadline", explorer)
    try await explorer.allowing(.failure).quiet().explore()
    // The server may say so.
    try await InterceptorExplorer(of: { _ in PassingInterceptor() })
      .server(.answers(.ok, .failure(.deadlineExceeded)))
      .quiet()
      .explore()
  }

  /// Waits for longer than calls may take before it passes an error on.
  private struct LongPause: AsyncUnaryInterceptor {
    let clock: VirtualClock

    func interceptUnary<Input: Sendable, Output: Sendable>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      let response = try await next(request)
      if response.code == .unavailable { try await self.clock.sleep(for: .seconds(1_000)) }
      return response
    }
  }

  func testWaitsBeyondTheDeadlineAreFound() async throws {
    let explorer = InterceptorExplorer { world in Subject { _ in LongPause(clock: world.clock) } }
    try await self.expect("no wait beyond the deadline", explorer)
    try await explorer.allowing(.endlessCalls).quiet().explore()
  }

  /// Holds the second call, by a clock or by `Task.sleep`.
  private struct HeldSecond: AsyncUnaryInterceptor {
    let pause: @Sendable () async throws -> Void

    func interceptUnary<Input: Sendable, Output: Sendable>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      if request.headers["x-canary"] == ["canary-2"] { try await self.pause() }
      return try await next(request)
    }
  }

  /// A timer that is due at another call's deadline is a reason to wait.
  func testTimersAtTheDeadlineOfAnotherCallRaiseNoAlarm() async throws {
    let pauses: [@Sendable (VirtualClock) async throws -> Void] = [
      { try await $0.sleep(for: .seconds(10)) }, { _ in try await Task.sleep(for: .seconds(10)) },
    ]
    for pause in pauses {
      let explorer = InterceptorExplorer { world in
        Subject { _ in HeldSecond { try await pause(world.clock) } }
      }
      .calls(2).neighbours(false).quiet()
      .configuration { $0.timeout = .seconds(10) }
      // The second call has a minute more.
      try await explorer.check("it is held until the deadline of the first one") { run in
        run.calls[0].deadline == .seconds(10) && run.calls[1].endTime == .seconds(10)
          && run.calls[1].deadline == .seconds(70) + .milliseconds(2)
          && run.calls.allSatisfy { $0.error == nil }
      }
      .replay("unary 2:1")
      try await self.expect("no wait beyond the deadline", explorer)
      try await explorer.allowing(.endlessCalls).explore()
    }
  }

  func testLongTimeoutsRaiseNoAlarm() async throws {
    for (pause, timeout) in [(5_400, 7_200), (100, 1 << 40), (100, .max)] {
      try await InterceptorExplorer { world in
        Subject { _ in HeldSecond { try await world.clock.sleep(for: .seconds(pause)) } }
      }
      .calls(3).neighbours(false).quiet()
      .server(.answers(.ok, .unavailable, .nothing))
      .configuration { $0.timeout = .seconds(timeout) }
      .explore()
    }
  }

  /// A poller beside a silent server stays within the limits of a schedule, although the timeout is 12 hours.
  func testLongTimeoutsBesidePollersRaiseNoAlarm() async throws {
    try await self.watching(isStopped: true) { clock in
      while !Task.isCancelled { try await clock.sleep(for: .milliseconds(100)) }
    }
    .server(.answers(.nothing)).configuration { $0.timeout = .seconds(43_200) }
    .schedules(5).quiet()
    .explore()
  }

  /// The explorer ignores a deadline in the context of a call's options.
  func testDeadlinesOfContextsAreLeftOut() async throws {
    try await InterceptorExplorer(of: { _ in PassingInterceptor() })
      .options { _, options in options.context.deadline = CallDeadline(in: .seconds(5)) }
      .server(.answers(.ok, .nothing))
      .schedules(100).quiet()
      .explore()
  }

  // MARK: After the end

  /// An interceptor with a task for each call, whose outcome nobody sees.
  private final class Watching: Interceptor {
    private let isStopped: Bool
    private let watch: @Sendable () async throws -> Void
    private var task: Task<Void, any Error>?

    init(isStopped: Bool, _ watch: @escaping @Sendable () async throws -> Void) {
      self.isStopped = isStopped
      self.watch = watch
    }

    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(
        requestFunction: { _ in self.task = Task { [watch = self.watch] in try await watch() } },
        endFunction: { _ in if self.isStopped { self.task?.cancel() } }
      )
    }
  }

  private func watching(
    isStopped: Bool,
    _ watch: @escaping @Sendable (VirtualClock) async throws -> Void
  ) -> InterceptorExplorer<Void> {
    InterceptorExplorer { world in
      Subject { _ in Watching(isStopped: isStopped) { try await watch(world.clock) } }
    }
    .server(.answers(.ok, .unavailable))
  }

  func testTimersThatNobodyStopsAreFound() async throws {
    let timers: [@Sendable (VirtualClock) async throws -> Void] = [
      { try await $0.sleep(for: .seconds(100)) },
      { try await $0.sleep(for: .seconds(36_000)) },
      { _ in try await Task.sleep(for: .seconds(100)) },
      { _ in try await Task.sleep(for: .seconds(36_000)) },
      { _ in try await Task.sleep(until: .now + .seconds(100)) },
      { _ in try await Task.sleep(nanoseconds: 100_000_000_000) },
    ]
    for timer in timers {
      let explorer = self.watching(isStopped: false, timer)
      try await self.expect("nothing after the end", explorer)
      try await explorer.schedules(200).allowing(.backgroundWork).quiet().explore()
    }
  }

  func testTimersThatAreStoppedRaiseNoAlarm() async throws {
    let timers: [@Sendable (VirtualClock) async throws -> Void] = [
      { try await $0.sleep(for: .seconds(100)) },
      { _ in try await Task.sleep(for: .seconds(100)) },
      { _ in try await Task.sleep(until: .now + .seconds(100)) },
      { _ in try await Task.sleep(nanoseconds: 100_000_000_000) },
      { _ in try await ContinuousClock().sleep(for: .seconds(100)) },
      { _ in try await SuspendingClock().sleep(for: .seconds(100)) },
      { try await $0.sleep(for: .seconds(36_000)) },
      { clock in
        async let one: Void = Task.sleep(for: .seconds(100))
        async let two: Void = clock.sleep(for: .seconds(100))
        _ = try await (one, two)
      },
      { clock in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<3 { group.addTask { try await Task.sleep(for: .seconds(100)) } }
          group.addTask { try await clock.sleep(for: .seconds(100)) }
          try await group.next()
          group.cancelAll()
        }
      },
    ]
    for timer in timers {
      try await self.watching(isStopped: true, timer).calls(2).schedules(500).quiet().explore()
    }
  }

  func testSlowPollersAreFound() async throws {
    let pollers: [@Sendable (VirtualClock) async throws -> Void] = [
      { clock in while true { try await clock.sleep(for: .seconds(20)) } },
      { clock in while true { try await clock.sleep(for: .seconds(3_600)) } },
      { _ in while true { try await Task.sleep(for: .seconds(100)) } },
    ]
    for poller in pollers {
      let explorer = self.watching(isStopped: false, poller)
      try await self.expect("background work ends", explorer)
      try await explorer.schedules(100).allowing(.backgroundWork).quiet().explore()
    }
  }

  func testPollersThatAreStoppedRaiseNoAlarm() async throws {
    try await self.watching(isStopped: true) { _ in
      while true { try await Task.sleep(for: .seconds(1)) }
    }
    .calls(2)
    .schedules(300)
    .quiet()
    .explore()
  }

  /// The failure tells which call it is about, and when this call was over.
  func testALateProceedIsThatOfItsCall() async throws {
    let explorer = InterceptorExplorer { world in
      Subject { _ in
        HookedInterceptor {
          UnaryFunction(requestFunction: { request, proceed in
            guard request.headers["x-canary"] == ["canary-2"] else { return proceed(.success(request)) }
            Task {
              try await world.clock.sleep(for: .seconds(1))
              proceed(.success(request))
            }
          })
        }
      }
    }
    .calls(2)
    do {
      try await explorer.explore()
      XCTFail("nothing was found")
    } catch let failure as ExplorationFailure {
      XCTAssertEqual(failure.rule, "nothing after the end")
      XCTAssertTrue(failure.reason.contains("when call 2 was over"), failure.reason)
    }
  }
}
