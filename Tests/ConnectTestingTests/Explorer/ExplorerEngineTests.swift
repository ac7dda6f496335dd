import Connect
import ConnectTesting
import Dispatch
import Foundation
import Synchronization
import XCTest

/// Time, limits and other threads, where code under test does what is unusual, but right.
final class ExplorerEngineTests: XCTestCase {
  /// Work of one call until its end hook, which does not touch the call.
  private final class Accompanied: Interceptor {
    private let work: @Sendable () async -> Void
    private var task: Task<Void, Never>?

    init(_ work: @escaping @Sendable () async -> Void) {
      self.work = work
    }

    func callFunction(_ method: MethodInfo) -> CallFunction {
      let work = self.work
      return CallFunction(
        requestFunction: { _ in self.task = Task { await work() } },
        endFunction: { _ in self.task?.cancel() }
      )
    }
  }

  // MARK: Time

  /// The server keeps a call waiting whose interceptor wakes up again and again, as it should.
  func testPeriodicWorkRaisesNoAlarm() async throws {
    let explorer = InterceptorExplorer { world in
      Subject { _ in
        Accompanied { while !Task.isCancelled { try? await world.clock.sleep(for: .seconds(30)) } }
      }
    }
    .server(.answers(.nothing, .ok, .headersThenNothing)).quiet()
    // Without a deadline.
    try await explorer.replay("unary 0:1")
    try await explorer.calls(2).methods([.unary, .serverStream]).explore()
    try await InterceptorExplorer(of: { _ in
      Accompanied { while !Task.isCancelled { try? await Task.sleep(for: .seconds(30)) } }
    })
    .server(.answers(.ok, .nothing)).quiet().explore()
  }

  /// Much work in all, but little at each time.
  func testFrequentWorkRaisesNoAlarm() async throws {
    try await InterceptorExplorer { world in
      Subject { _ in
        Accompanied { while !Task.isCancelled { try? await world.clock.sleep(for: .milliseconds(5)) } }
      }
    }
    .server(.answers(.nothing)).schedules(10).quiet().explore()
  }

  /// A call that begins an hour after the first one has its own hour.
  func testCallsHaveAnHourEach() async throws {
    let explorer = InterceptorExplorer { world in
      Subject { _ in SleepyInterceptor { try await world.clock.sleep(for: .seconds(3_000)) } }
    }
    .calls(3).neighbours(false).quiet()
    .check("nobody has given up") { run in
      run.calls.allSatisfy { $0.endTime == $0.startTime + .seconds(3_000) && $0.cancelTime == nil }
    }
    // Without deadlines, and all at once; then one after the other, and two minutes apart.
    for choices in ["0:1 2:1 4:1", "0:1 1:1 2:1 3:1 4:1", "0:1 1:8 2:1 3:8 4:1"] {
      try await explorer.replay("unary \(choices)")
    }
  }

  /// `Task.sleep` takes as long as its caller says, also on a computer that loses time between reading the clock and sleeping.
  func testSleepsAreExact() async throws {
    let sleeps: [(Duration, @Sendable () async throws -> Void)] = [
      (.seconds(7), { try await Task.sleep(for: .seconds(7)) }),
      (.seconds(1_234), { try await Task.sleep(for: .seconds(1_234)) }),
      (.seconds(7), { try await Task.sleep(nanoseconds: 7_000_000_000) }),
      (
        .seconds(7),
        {
          let start = ContinuousClock.now
          let end = start + .seconds(7)
          while start.duration(to: .now) < .milliseconds(120) {}
          try await Task.sleep(until: end)
        }
      ),
      // A task without executor of its own changes executors to sleep, after it has read the clock.
      (
        .seconds(7),
        {
          try await Task.detached {
            let start = ContinuousClock.now
            let end = start + .seconds(7)
            while start.duration(to: .now) < .milliseconds(120) {}
            try await Task.sleep(until: end)
          }.value
        }
      ),
    ]
    for (delay, sleep) in sleeps {
      try await InterceptorExplorer { _ in Subject { _ in SleepyInterceptor(sleep) } }
        .check("the delay is exact") { run in
          let call = run.calls[0]
          return call.endTime == min(delay, call.deadline ?? delay)
        }
        .allowing(.endlessCalls, .backgroundWork).schedules(1).quiet().explore()
    }
  }

  /// Sleeps, and then passes the request on.
  private struct SleepyInterceptor: AsyncUnaryInterceptor {
    let sleep: @Sendable () async throws -> Void

    init(_ sleep: @escaping @Sendable () async throws -> Void) {
      self.sleep = sleep
    }

    func interceptUnary<Input: Sendable, Output: Sendable>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      try await self.sleep()
      return try await next(request)
    }
  }

  // MARK: Loops

  /// A cancelled task cannot sleep, and this one tries again for ever.
  func testLoopsOfCancelledTasksAreFound() async throws {
    let loops: [@Sendable (ExplorerWorld) async -> Void] = [
      { world in while true { try? await world.clock.sleep(for: .seconds(1)) } },
      { world in while true { try? await world.step("poll") } },
      { world in while true { try? await world.clock.sleep(for: .zero) } },
    ]
    for loop in loops {
      let rule = await Self.rule(
        of: InterceptorExplorer { world in Subject { _ in Accompanied { await loop(world) } } }
          .allowing(.backgroundWork)
      )
      XCTAssertEqual(rule, "work ends")
    }
    // The task of a call has an executor: calling a function gives it no other one.
    let rule = await Self.rule(
      of: InterceptorExplorer { world in
        Subject { _ in
          SleepyInterceptor { while true { try? await world.clock.sleep(for: .seconds(1)) } }
        }
      }
      .allowing(.backgroundWork)
    )
    XCTAssertEqual(rule, "work ends")
  }

  private static func rule<Observed>(of explorer: InterceptorExplorer<Observed>) async -> String? {
    do {
      try await explorer.quiet().explore()
      return nil
    } catch {
      return (error as? ExplorationFailure)?.rule
    }
  }

  /// Pollers that nobody stops are ended with the schedule, and hold nothing then.
  func testPollersDoNotPileUp() async throws {
    let all = TestCount()
    let alive = TestCount()
    try await InterceptorExplorer { world in
      Subject { _ in
        HookedInterceptor {
          let mark = AliveMark(all, alive)
          Task {
            while !Task.isCancelled { try? await world.clock.sleep(for: .seconds(20)) }
            mark.keep()
          }
          return UnaryFunction(updateRequest: { _ in })
        }
      }
    }
    .allowing(.backgroundWork).schedules(100).quiet().explore()
    XCTAssertGreaterThanOrEqual(all.value, 50)
    XCTAssertLessThanOrEqual(alive.value, 1)
  }

  /// Counts how many of its kind there are.
  private final class AliveMark: Sendable {
    private let alive: TestCount

    init(_ all: TestCount, _ alive: TestCount) {
      self.alive = alive
      all.add()
      alive.add()
    }

    deinit { self.alive.add(-1) }

    func keep() {}
  }

  // MARK: Other threads

  /// What other threads do is waited for although time could move on.
  func testOtherThreadsAreWaitedForBesideTimers() async throws {
    let explorer = InterceptorExplorer { world in
      Subject(interceptors: [
        { _ in Accompanied { while !Task.isCancelled { try? await world.clock.sleep(for: .seconds(30)) } } },
        { _ in
          HookedInterceptor {
            UnaryFunction(requestFunction: { request, proceed in
              DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) {
                proceed(.success(request))
              }
            })
          }
        },
      ])
    }
    .patience(.seconds(10)).schedules(50).quiet()
    // Without a deadline.
    try await explorer.replay("unary 0:1")
    let report = try await explorer.explore()
    XCTAssertTrue(report.usedOtherThreads)
  }

  /// Everything of the world may be used on other threads.
  func testTheWorldIsForAllThreads() async throws {
    let report = try await InterceptorExplorer { world in
      Subject { _ in
        HookedInterceptor {
          UnaryFunction(requestFunction: { request, proceed in
            DispatchQueue.global().async {
              Task {
                let clock = world.clock
                let start = world.now
                async let sleep: Void = clock.sleep(for: .milliseconds(20))
                let other = Task { try await clock.sleep(for: .seconds(100_000)) }
                world.note(world.token())
                try? await world.step("elsewhere", canFail: true)
                other.cancel()
                _ = try? await other.value
                try? await sleep
                if world.now >= start { proceed(.success(request)) }
              }
            }
          })
        }
      }
    }
    .calls(2).patience(.seconds(10)).allowing(.failure, .backgroundWork).schedules(200).quiet().explore()
    XCTAssertTrue(report.usedOtherThreads)
    XCTAssertEqual(report.schedules, 200)
  }

  /// Tasks elsewhere that outlive their schedule come to their end.
  func testLateWorkOfOtherThreadsEnds() async throws {
    let begun = TestCount()
    let ended = TestCount()
    let hold = DispatchSemaphore(value: 0)
    try await InterceptorExplorer { world in
      Subject { _ in
        HookedInterceptor {
          begun.add()
          DispatchQueue.global().async {
            // Until the exploration is over.
            hold.wait()
            hold.signal()
            Task {
              try? await world.step("late")
              ended.add()
            }
            Task {
              try? await world.clock.sleep(for: .seconds(1_000))
              ended.add()
            }
            world.note("late")
          }
          return UnaryFunction(updateRequest: { _ in })
        }
      }
    }
    .schedules(3).quiet().explore()
    hold.signal()
    let expected = 2 * begun.value
    XCTAssertGreaterThanOrEqual(expected, 6)
    for _ in 0..<1_000 where ended.value < expected {
      try await Task.sleep(for: .milliseconds(10))
    }
    XCTAssertEqual(ended.value, expected)
  }

  // MARK: The runtime

  private typealias Enqueue = @convention(thin) (UnownedJob) -> Void

  /// A hook that somebody sets while an exploration goes on is not taken away.
  func testHooksOfOthersStay() async throws {
    let program = try XCTUnwrap(dlopen(nil, RTLD_NOW))
    defer { dlclose(program) }
    let symbol = try XCTUnwrap(dlsym(program, "swift_task_enqueueGlobal_hook"))
    let hook: @convention(thin) (UnownedJob, Enqueue) -> Void = { job, original in original(job) }
    let other = unsafeBitCast(hook, to: UInt.self)
    let slot = UInt(bitPattern: symbol)
    try await InterceptorExplorer { _ in
      Subject { _ in
        HookedInterceptor {
          UnsafeMutablePointer<UInt>(bitPattern: slot)?.pointee = other
          return UnaryFunction(updateRequest: { _ in })
        }
      }
    }
    .schedules(1).quiet().explore()
    let pointer = try XCTUnwrap(UnsafeMutablePointer<UInt>(bitPattern: slot))
    XCTAssertEqual(pointer.pointee, other)
    pointer.pointee = 0
  }
}
