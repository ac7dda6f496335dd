import Connect
import ConnectTesting
import Synchronization
import XCTest

/// The executor that an in-memory transport has of its own.
final class RealTimeExecutorTests: XCTestCase {
  private let executor = InMemoryTransport().executor

  func testRunsWorkInOrderOnItself() async throws {
    let numbers = Mutex<[Int]>([])
    let isCurrent = Mutex<Set<Bool>>([])
    for number in 0..<100 {
      self.executor.execute { [executor] in
        numbers.withLock { $0.append(number) }
        isCurrent.withLock { _ = $0.insert(executor.isCurrent) }
      }
    }
    await withCheckedContinuation { continuation in self.executor.execute { continuation.resume() } }
    XCTAssertEqual(numbers.withLock { $0 }, Array(0..<100))
    XCTAssertEqual(isCurrent.withLock { $0 }, [true])
    XCTAssertFalse(self.executor.isCurrent)
  }

  func testTimersRunAtTheirTimeUnlessCancelled() async throws {
    let ran = CallbackResults<String>()
    let start = self.executor.now
    self.executor.execute { [executor] in
      let cancelled = executor.schedule(after: .milliseconds(5)) { ran.receive("cancelled") }
      cancelled.cancel()
      _ = executor.schedule(after: .milliseconds(20)) { ran.receive("late") }
      _ = executor.schedule(after: .milliseconds(1)) { ran.receive("early") }
      _ = executor.schedule(after: .seconds(Int64.max)) { ran.receive("never") }
    }
    let order = try await ran.next(2)
    XCTAssertEqual(order, ["early", "late"])
    XCTAssertGreaterThanOrEqual(self.executor.now - start, .milliseconds(20))
  }

  func testCancelledTimerLetsGoOfItsWork() async throws {
    final class Held: Sendable {
      let released: CallbackResults<String>
      init(_ released: CallbackResults<String>) { self.released = released }
      deinit { self.released.receive("released") }
    }
    let released = CallbackResults<String>()
    weak var held: Held?
    let timer: any CallTimer = {
      let object = Held(released)
      held = object
      return self.executor.schedule(after: .seconds(60)) { withExtendedLifetime(object) {} }
    }()
    XCTAssertNotNil(held)
    timer.cancel()
    _ = try await released.next(1)
    XCTAssertNil(held)
  }
}
