import XCTest

@testable import ConnectChannels

final class WaitingQueueTests: XCTestCase {
  func testFirstInFirstOut() {
    var queue = WaitingQueue<Int>()
    XCTAssertNil(queue.popFirst())
    for value in 1...3 { _ = queue.append(value) }
    XCTAssertEqual(queue.popFirst(), 1)
    _ = queue.append(4)
    XCTAssertEqual([queue.popFirst(), queue.popFirst(), queue.popFirst(), queue.popFirst()], [2, 3, 4, nil])
  }

  func testRemovalAnywhereAndOnce() {
    var queue = WaitingQueue<Int>()
    let handles = (0..<5).map { queue.append($0) }
    XCTAssertEqual(queue.remove(handles[2]), 2)
    XCTAssertNil(queue.remove(handles[2]))
    XCTAssertEqual(queue.remove(handles[0]), 0)
    XCTAssertEqual(queue.remove(handles[4]), 4)
    XCTAssertEqual(queue.count, 2)
    // A place that is used again does not answer to the old handle.
    _ = queue.append(5)
    XCTAssertNil(queue.remove(handles[4]))
    XCTAssertEqual([queue.popFirst(), queue.popFirst(), queue.popFirst(), queue.popFirst()], [1, 3, 5, nil])
    XCTAssertNil(queue.remove(handles[1]))
  }

  func testRandomOperationsAgainstAnArray() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    var queue = WaitingQueue<Int>()
    var model: [(WaitingQueue<Int>.Handle, Int)] = []
    for step in 0..<20_000 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        model.append((queue.append(step), step))
      case 2:
        XCTAssertEqual(queue.popFirst(), model.isEmpty ? nil : model.removeFirst().1, "seed \(seed)")
      default:
        guard let index = model.indices.randomElement(using: &random) else { continue }
        let (handle, value) = model.remove(at: index)
        XCTAssertEqual(queue.remove(handle), value, "seed \(seed)")
        XCTAssertNil(queue.remove(handle), "seed \(seed)")
      }
      XCTAssertEqual(queue.count, model.count, "seed \(seed)")
    }
  }
}
