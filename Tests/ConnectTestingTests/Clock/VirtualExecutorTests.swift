import Connect
import ConnectTesting
import Synchronization
import XCTest

final class VirtualExecutorTests: XCTestCase {
  /// What happened, in order.
  private final class Log: Sendable {
    private let entries = Mutex<[String]>([])

    func add(_ entry: String) { self.entries.withLock { $0.append(entry) } }

    var all: [String] { self.entries.withLock { $0 } }
  }

  // MARK: Work

  func testWorkRunsInOrderWithoutTime() {
    let executor = VirtualExecutor()
    let log = Log()
    executor.sync {
      executor.execute {
        log.add("1 \(executor.isCurrent)")
        executor.execute {
          log.add("3")
          executor.execute { log.add("4") }
        }
      }
      executor.execute { log.add("2") }
    }
    XCTAssertTrue(executor.runUntilIdle())
    XCTAssertEqual(log.all, ["1 true", "2", "3", "4"])
    XCTAssertEqual(executor.now, .zero)
    XCTAssertFalse(executor.isCurrent)
  }

  func testWorkThatNeverEndsIsNotWaitedForForEver() {
    let executor = VirtualExecutor(maximumRounds: 100)
    let isOver = Mutex(false)
    @Sendable func again() {
      if !isOver.withLock({ $0 }) { executor.execute { again() } }
    }
    again()
    XCTAssertFalse(executor.runUntilIdle())
    isOver.withLock { $0 = true }
    XCTAssertTrue(executor.runUntilIdle())
  }

  func testSyncIsOnTheExecutorAndMayBeNested() {
    let executor = VirtualExecutor()
    let isCurrent = executor.sync { executor.sync { executor.isCurrent } }
    XCTAssertTrue(isCurrent)
    XCTAssertFalse(executor.sync { executor.runUntilIdle() })
  }

  // MARK: Time

  func testTimersRunAtTheirTimesInOrder() {
    let executor = VirtualExecutor()
    let log = Log()
    for seconds in [3, 1, 2] {
      _ = executor.schedule(after: .seconds(seconds)) { log.add("\(seconds) at \(executor.now)") }
    }
    _ = executor.schedule(after: .seconds(1)) { log.add("1 again") }
    XCTAssertEqual(executor.scheduled, [.seconds(1), .seconds(1), .seconds(2), .seconds(3)])
    executor.advance(by: .milliseconds(999))
    XCTAssertEqual(log.all, [])
    executor.advance(to: .seconds(2.5))
    XCTAssertEqual(log.all, ["1 at 1.0 seconds", "1 again", "2 at 2.0 seconds"])
    XCTAssertEqual(executor.now, .seconds(2.5))
    XCTAssertEqual(executor.scheduled, [.seconds(3)])
    XCTAssertTrue(executor.advanceToNext())
    XCTAssertEqual(log.all.last, "3 at 3.0 seconds")
    XCTAssertFalse(executor.advanceToNext())
  }

  func testATimerMayScheduleOneThatIsDueInTheSameStep() {
    let executor = VirtualExecutor()
    let log = Log()
    _ = executor.schedule(after: .seconds(2)) { log.add("late") }
    executor.execute {
      _ = executor.schedule(after: .seconds(1)) {
        log.add("first")
        // As what is behind a hop does.
        executor.execute { _ = executor.schedule(after: .milliseconds(500)) { log.add("second") } }
      }
    }
    executor.advance(by: .seconds(2))
    XCTAssertEqual(log.all, ["first", "second", "late"])
  }

  func testCancelledTimersDoNotRun() {
    let executor = VirtualExecutor()
    let log = Log()
    let timer = executor.schedule(after: .seconds(1)) { log.add("no") }
    timer.cancel()
    XCTAssertEqual(executor.scheduled, [])
    executor.advance(by: .seconds(1))
    XCTAssertEqual(log.all, [])
  }

  func testTimeDoesNotGoBack() {
    let executor = VirtualExecutor()
    let log = Log()
    executor.advance(to: .seconds(5))
    executor.advance(to: .seconds(1))
    executor.advance(by: .seconds(-1))
    executor.passUnnoticed(.seconds(-1))
    XCTAssertEqual(executor.now, .seconds(5))
    _ = executor.schedule(after: .seconds(-1)) { log.add("at once, once time is advanced") }
    executor.runUntilIdle()
    XCTAssertEqual(log.all.count, 0)
    executor.advance(to: .zero)
    XCTAssertEqual(log.all.count, 1)
  }

  func testTimeThatPassesUnnoticedRunsNothing() {
    let executor = VirtualExecutor()
    let log = Log()
    _ = executor.schedule(after: .seconds(1)) { log.add("at \(executor.now)") }
    executor.passUnnoticed(.seconds(3))
    executor.runUntilIdle()
    XCTAssertEqual(log.all, [])
    executor.advance(by: .zero)
    XCTAssertEqual(log.all, ["at 3.0 seconds"])
  }

  func testATimerWithoutDelayThatSchedulesItselfIsGivenUp() {
    let executor = VirtualExecutor(maximumRounds: 100)
    @Sendable func again() {
      _ = executor.schedule(after: .zero) { again() }
    }
    again()
    XCTAssertFalse(executor.advance(by: .seconds(1)))
    XCTAssertEqual(executor.now, .zero)
  }

  func testManyThreads() async {
    let executor = VirtualExecutor()
    let log = Log()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          for _ in 0..<100 {
            executor.execute { log.add("") }
            _ = executor.schedule(after: .seconds(number)) { log.add("") }
          }
        }
      }
    }
    executor.advance(by: .seconds(8))
    XCTAssertEqual(log.all.count, 1600)
    XCTAssertEqual(executor.scheduled, [])
  }

  // MARK: Async

  func testTasksRunOnIt() async {
    let executor = VirtualExecutor()
    let log = Log()
    let task = Task(executorPreference: executor) {
      log.add("begins \(executor.isCurrent)")
      try? await executor.clock.sleep(for: .seconds(1))
      log.add("goes on \(executor.isCurrent)")
    }
    executor.runUntilIdle()
    XCTAssertEqual(log.all, ["begins true"])
    XCTAssertEqual(executor.scheduled, [.seconds(1)])
    executor.advance(by: .seconds(1))
    XCTAssertEqual(log.all, ["begins true", "goes on true"])
    await task.value
  }

  func testLettingTimePass() async throws {
    let executor = VirtualExecutor()
    let clock: any Clock<Duration> = executor.clock
    let seconds = try await executor.lettingTimePass {
      async let first: Void = clock.sleep(for: .seconds(3600))
      try await clock.sleep(for: .seconds(60))
      let between = executor.now
      try await first
      return [between, executor.now]
    }
    XCTAssertEqual(seconds, [.seconds(60), .seconds(3600)])
  }

  func testLettingTimePassThrowsWhatIsThrown() async {
    struct Failure: Error {}
    let executor = VirtualExecutor()
    do {
      try await executor.lettingTimePass { throw Failure() }
      XCTFail("no error")
    } catch {
      XCTAssertTrue(error is Failure, "\(error)")
    }
  }

  func testLettingTimePassUpToALimitCancelsTheOperation() async {
    let executor = VirtualExecutor()
    let log = Log()
    do {
      try await executor.lettingTimePass(upTo: .seconds(10)) {
        do {
          try await executor.clock.sleep(for: .seconds(11))
        } catch {
          log.add("\(error is CancellationError)")
          throw error
        }
      }
      XCTFail("no error")
    } catch {
      XCTAssertEqual("\(error)", "the operation has not ended by 10.0 seconds")
    }
    executor.runUntilIdle()
    XCTAssertEqual(log.all, ["true"])
    XCTAssertEqual(executor.scheduled, [])
    XCTAssertEqual(executor.now, .zero)
  }

  func testLettingTimePassDoesNotWaitForEver() async {
    let executor = VirtualExecutor()
    do {
      try await executor.lettingTimePass(patience: .milliseconds(10)) {
        try await Task.sleep(for: .seconds(7200))
      }
      XCTFail("no error")
    } catch {
      XCTAssertTrue(error is VirtualTimeLimit, "\(error)")
    }
  }

  func testLettingTimePassWaitsForWorkElsewhere() async throws {
    let executor = VirtualExecutor()
    let result = try await executor.lettingTimePass {
      await Task.detached { try? await Task.sleep(for: .milliseconds(5)) }.value
      try await executor.clock.sleep(for: .seconds(1))
      return executor.now
    }
    XCTAssertEqual(result, .seconds(1))
  }

  func testCancellingTheTaskThatLetsTimePass() async {
    let executor = VirtualExecutor()
    let task = Task {
      try await executor.lettingTimePass { try await Task.sleep(for: .seconds(7200)) }
    }
    task.cancel()
    do {
      try await task.value
      XCTFail("no error")
    } catch {
      XCTAssertTrue(error is CancellationError, "\(error)")
    }
  }

  func testWaitUntil() async throws {
    let executor = VirtualExecutor()
    Task.detached {
      try await Task.sleep(for: .milliseconds(5))
      _ = executor.schedule(after: .seconds(2)) {}
    }
    try await executor.wait { executor.scheduled == [.seconds(2)] }
    XCTAssertEqual(executor.now, .zero)
  }

  func testWaitUntilIsBounded() async {
    let executor = VirtualExecutor()
    _ = executor.schedule(after: .seconds(2)) {}
    do {
      try await executor.wait(upTo: .milliseconds(10)) { false }
      XCTFail("no error")
    } catch {
      XCTAssertEqual(
        "\(error)",
        "what was waited for did not happen within 0.01 seconds of real time; "
          + "virtual time is 0.0 seconds, scheduled is [2.0 seconds]"
      )
    }
  }
}
