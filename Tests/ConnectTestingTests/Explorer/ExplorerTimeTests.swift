import Connect
import ConnectTesting
import Dispatch
import NIOCore
import Synchronization
import XCTest

/// Tasks and clocks of code under test are part of the schedule.
final class ExplorerTimeTests: XCTestCase {
  private actor Counter {
    private var count = 0

    func next() -> Int {
      self.count += 1
      return self.count
    }
  }

  /// 1,000 sleeps of an hour and more take no real time, and no other thread takes part.
  func testSleepsAreVirtual() async throws {
    let sleeps: [@Sendable () async throws -> Void] = [
      { try await Task.sleep(for: .seconds(7)) },
      { try await Task.sleep(nanoseconds: 7_000_000_000) },
      { try await ContinuousClock().sleep(until: .now + .seconds(7)) },
      { await Task.yield() },
    ]
    for sleep in sleeps {
      let explorer = InterceptorExplorer(of: { _ in Slept(sleep: sleep) }).quiet().schedules(200)
      let report = try await explorer.explore()
      let again = try await explorer.explore()
      XCTAssertEqual(report, again)
      XCTAssertFalse(report.usedOtherThreads)
      XCTAssertTrue(report.controlsSleep)
      XCTAssertTrue(report.controlsAllTasks)
    }
  }

  /// Waits in a child task before it passes the request on.
  private struct Slept: AsyncUnaryInterceptor {
    let sleep: @Sendable () async throws -> Void
    private let counter = Counter()

    init(sleep: @escaping @Sendable () async throws -> Void) {
      self.sleep = sleep
    }

    func interceptUnary<Input: Sendable, Output: Sendable>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      async let slept: Void = self.sleep()
      let apart = Task { await self.counter.next() }
      try await slept
      _ = await apart.value
      return try await next(request)
    }
  }

  /// Work of other threads is waited for, and the report tells of it.
  func testOtherThreadsAreWaitedFor() async throws {
    let report = try await InterceptorExplorer(of: { _ in
      HookedInterceptor {
        UnaryFunction(requestFunction: { request, proceed in
          DispatchQueue.global().async { proceed(.success(request)) }
        })
      }
    })
    .patience(.seconds(10))
    .schedules(50)
    .quiet()
    .explore()
    XCTAssertTrue(report.usedOtherThreads)
    XCTAssertTrue(report.description.contains("other threads took part"), report.description)
  }

  func testExplorationsAreTheSameAgain() async throws {
    func report(_ seed: UInt64) async throws -> ExplorationReport {
      try await InterceptorExplorer { world in
        let store = TokenStore(isShared: true) {
          try await world.step("token endpoint", canFail: true)
          return world.token()
        }
        return Subject(observing: store) { _ in TokenInterceptor(store: store) }
      }
      .calls(3)
      .server(.answers(.ok, .unauthenticated, .headersThenNothing))
      .seed(seed)
      .quiet()
      .explore()
    }
    let first = try await report(1)
    let again = try await report(1)
    let other = try await report(2)
    XCTAssertEqual(first, again)
    XCTAssertNotEqual(first.trace, other.trace)
    XCTAssertGreaterThan(first.coverage["steps that failed"] ?? 0, 10)
  }

  /// Jobs of other tasks of the process still run while an exploration goes on.
  func testOtherTasksOfTheProcessGoOn() async throws {
    let others = Task.detached {
      for _ in 0..<50 { try await Task.sleep(for: .milliseconds(1)) }
      return true
    }
    try await InterceptorExplorer(of: { _ in PassingInterceptor() }).quiet().explore()
    let isDone = try await others.value
    XCTAssertTrue(isDone)
  }

  func testExplorationsWaitForOneAnother() async throws {
    try await withThrowingTaskGroup(of: ExplorationReport.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try await InterceptorExplorer(of: { _ in PassingAsyncInterceptor() }).quiet().schedules(200)
            .explore()
        }
      }
      var reports: Set<ExplorationReport> = []
      for try await report in group { reports.insert(report) }
      XCTAssertEqual(reports.count, 1)
    }
  }

  /// What the closure of the subject throws ends the exploration.
  func testErrorsOfTheSubject() async throws {
    struct Broken: Error {}
    do {
      try await InterceptorExplorer { _ -> Subject<Void> in throw Broken() }.explore()
      XCTFail("nothing was thrown")
    } catch is Broken {}
  }
}
