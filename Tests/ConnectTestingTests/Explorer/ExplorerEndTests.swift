import Connect
import ConnectTesting
import Dispatch
import Synchronization
import XCTest

/// Explorations that end early: because they hang, or are cancelled.
final class ExplorerEndTests: XCTestCase {
  /// Code that never lets go of its thread fails its exploration. Later ones are not affected, even when it wakes up.
  func testHangsAreFound() async throws {
    let hold = TestHold()
    let loop: @Sendable () -> Void = { while !hold.isReleased {} }
    let block: @Sendable () -> Void = { hold.wait() }
    let before = try await Self.passing().explore()
    for hang in [loop, block] {
      let explorer = InterceptorExplorer { world in
        Subject { _ in
          HookedInterceptor {
            UnaryFunction(updateRequest: { _ in
              world.note("here")
              hang()
            })
          }
        }
      }
      .hanging(after: .milliseconds(500)).quiet()
      let failure = await Self.failure { try await explorer.explore() }
      XCTAssertEqual(failure?.rule, "work ends")
      XCTAssertEqual(failure?.schedule, "unary")
      XCTAssertEqual(failure?.schedulesUntilFound, 1)
      let again = await Self.failure { try await explorer.replay("unary 0:1") }
      XCTAssertEqual(again?.rule, "work ends")
      XCTAssertEqual(again?.schedule, "unary 0:1")
      XCTAssertTrue(again?.story.hasSuffix("here") == true, again?.story ?? "")
    }
    let after = try await Self.passing().explore()
    XCTAssertEqual(after, before)
    // The threads that were left behind go on with their schedules while another exploration runs.
    hold.release()
    let last = try await Self.passing().explore()
    XCTAssertEqual(last, before)
  }

  /// `Task.sleep` in a cancelled task throws without a suspension: its loop never lets go of the thread.
  func testLoopsOfSleepsAreFound() async throws {
    let hold = TestHold()
    let failure = await Self.failure {
      try await InterceptorExplorer(of: { _ in
        HookedInterceptor {
          let task = Task { while !hold.isReleased { try? await Task.sleep(for: .seconds(1)) } }
          return UnaryFunction(updateResponse: { _ in
            task.cancel()
            return .proceed
          })
        }
      })
      .hanging(after: .milliseconds(500)).quiet().explore()
    }
    hold.release()
    XCTAssertEqual(failure?.rule, "work ends")
  }

  private static func failure(_ explore: () async throws -> Void) async -> ExplorationFailure? {
    do {
      try await explore()
      return nil
    } catch {
      return error as? ExplorationFailure
    }
  }

  private static func passing() -> InterceptorExplorer<Void> {
    InterceptorExplorer(of: { _ in PassingAsyncInterceptor() }).calls(2).quiet()
  }

  func testCancelledExplorationsEnd() async throws {
    let schedules = TestCount()
    let explorer = InterceptorExplorer { _ in
      schedules.add()
      return Subject { _ in PassingInterceptor() }
    }
    .schedules(1_000_000_000).quiet()
    let task = Task { try await explorer.explore() }
    for _ in 0..<1_000 where schedules.value < 10 { try await Task.sleep(for: .milliseconds(10)) }
    // Another one waits for its turn.
    let other = Task { try await explorer.explore() }
    other.cancel()
    await Self.assertIsCancelled(other)
    task.cancel()
    await Self.assertIsCancelled(task)
    try await Self.passing().explore()
  }

  private static func assertIsCancelled(_ task: Task<ExplorationReport, any Error>) async {
    do {
      _ = try await task.value
      XCTFail("not cancelled")
    } catch {
      XCTAssertTrue(error is CancellationError, "\(error)")
    }
  }
}

/// Holds threads until the test releases them.
private final class TestHold: Sendable {
  private let flag = Atomic(false)
  private let semaphore = DispatchSemaphore(value: 0)

  var isReleased: Bool { self.flag.load(ordering: .relaxed) }

  func wait() {
    self.semaphore.wait()
    self.semaphore.signal()
  }

  func release() {
    self.flag.store(true, ordering: .relaxed)
    self.semaphore.signal()
  }
}
