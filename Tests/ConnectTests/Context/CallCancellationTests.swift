import Synchronization
import XCTest

@testable import Connect

final class CallCancellationTests: XCTestCase {
  func testCancelsWhatBelongsToItOnce() {
    let cancellation = CallCancellation()
    let targets = (0..<3).map { _ in Target() }
    for target in targets { cancellation.add(target) }
    XCTAssertFalse(cancellation.isCancelled)
    XCTAssertEqual(targets.map(\.count), [0, 0, 0])
    cancellation.cancel()
    cancellation.cancel()
    XCTAssertTrue(cancellation.isCancelled)
    XCTAssertEqual(targets.map(\.count), [1, 1, 1])
  }

  func testWhatIsAddedLaterIsCancelledAtOnce() {
    let cancellation = CallCancellation()
    cancellation.cancel()
    let target = Target()
    cancellation.add(target)
    XCTAssertEqual(target.count, 1)
  }

  func testReachesInnerCancellations() {
    let outer = CallCancellation()
    let inner = CallCancellation()
    outer.add(inner)
    inner.cancel()
    XCTAssertFalse(outer.isCancelled)
    let other = CallCancellation()
    outer.add(other)
    outer.cancel()
    XCTAssertTrue(other.isCancelled)
  }

  func testKeepsNothingAliveAndDoesNotGrow() {
    let cancellation = CallCancellation()
    let kept = Target()
    cancellation.add(kept)
    for _ in 0..<10_000 {
      weak var gone: Target?
      do {
        let target = Target()
        gone = target
        cancellation.add(target)
      }
      XCTAssertNil(gone)
    }
    XCTAssertLessThan(cancellation.memberCount, 50)
    cancellation.cancel()
    XCTAssertEqual(kept.count, 1)
  }

  func testFromManyThreads() async {
    let cancellation = CallCancellation()
    let targets = (0..<1000).map { _ in Target() }
    await withTaskGroup(of: Void.self) { group in
      for (index, target) in targets.enumerated() {
        group.addTask {
          cancellation.add(target)
          if index == 500 { cancellation.cancel() }
        }
      }
    }
    XCTAssertEqual(targets.map(\.count), Array(repeating: 1, count: 1000))
  }
}

private final class Target: Cancellable {
  private let cancelled = Atomic(0)

  var count: Int { self.cancelled.load(ordering: .relaxed) }

  func cancel() { self.cancelled.add(1, ordering: .relaxed) }
}
