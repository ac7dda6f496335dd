import ConnectTesting
import XCTest

final class VirtualClockTests: XCTestCase {
  func testInstants() {
    let executor = VirtualExecutor()
    let start = executor.clock.now
    executor.advance(by: .seconds(3))
    let end = executor.clock.now
    XCTAssertEqual(start.duration(to: end), .seconds(3))
    XCTAssertEqual(start.advanced(by: .seconds(3)), end)
    XCTAssertLessThan(start, end)
    XCTAssertEqual(end.offset, .seconds(3))
  }

  func testSleepUntilATimeThatHasPassedReturnsAtOnce() async throws {
    let executor = VirtualExecutor()
    executor.advance(by: .seconds(3))
    try await executor.clock.sleep(until: VirtualClock.Instant(offset: .seconds(2)))
    XCTAssertEqual(executor.scheduled, [])
  }

  func testSleepEndsWithItsTask() async throws {
    let executor = VirtualExecutor()
    let task = Task { try await executor.clock.sleep(for: .seconds(1)) }
    try await executor.wait { !executor.scheduled.isEmpty }
    task.cancel()
    let result = await task.result
    XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError) }
    XCTAssertEqual(executor.scheduled, [])

    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await executor.clock.sleep(for: .seconds(1))
    }
    let lateResult = await late.result
    XCTAssertThrowsError(try lateResult.get()) { XCTAssertTrue($0 is CancellationError) }
  }

  func testMeasure() async throws {
    let executor = VirtualExecutor()
    let duration = try await executor.lettingTimePass {
      try await executor.clock.measure { try await executor.clock.sleep(for: .seconds(5)) }
    }
    XCTAssertEqual(duration, .seconds(5))
  }
}
