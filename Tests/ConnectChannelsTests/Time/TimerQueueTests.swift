import Connect
import ConnectChannels
import Synchronization
import XCTest

/// Timers come in their order, and those that are cancelled not at all.
final class TimerQueueTests: XCTestCase {
  private final class Log: Sendable {
    private let numbers = Mutex<[Int]>([])

    func add(_ number: Int) { self.numbers.withLock { $0.append(number) } }
    var all: [Int] { self.numbers.withLock { $0 } }
  }

  private func fire(_ queue: TimerQueue, dueBy time: Int64) {
    while let work = queue.takeFirst(dueBy: time) { work() }
  }

  func testTimersOfOneTimeComeInTheirOrder() {
    let queue = TimerQueue()
    let log = Log()
    for number in 0..<20 { _ = queue.schedule(at: 5) { log.add(number) } }
    _ = queue.schedule(at: 4) { log.add(-1) }
    self.fire(queue, dueBy: 3)
    XCTAssertEqual(log.all, [])
    XCTAssertEqual(queue.nextTime, 4)
    self.fire(queue, dueBy: 5)
    XCTAssertEqual(log.all, [-1] + Array(0..<20))
    XCTAssertEqual(queue.count, 0)
    XCTAssertNil(queue.nextTime)
  }

  func testCancelledTimersGoAtOnce() {
    let queue = TimerQueue()
    let log = Log()
    let timers = (0..<10).map { number in queue.schedule(at: Int64(number)) { log.add(number) } }
    for number in [0, 3, 9, 5] { timers[number].cancel() }
    XCTAssertEqual(queue.count, 6)
    XCTAssertEqual(queue.nextTime, 1)
    timers[3].cancel()
    XCTAssertEqual(queue.count, 6)
    self.fire(queue, dueBy: 100)
    XCTAssertEqual(log.all, [1, 2, 4, 6, 7, 8])
    // Too late.
    for timer in timers { timer.cancel() }
    XCTAssertEqual(queue.count, 0)
  }

  /// What a timer's work holds is let go of with it.
  func testACancelledTimerHoldsNothing() {
    let queue = TimerQueue()
    var log: Log? = Log()
    weak let held = log
    let timer = queue.schedule(at: 1) { [log] in log?.add(1) }
    log = nil
    XCTAssertNotNil(held)
    timer.cancel()
    XCTAssertNil(held)
  }

  /// Thousands of steps, compared with an array that is sorted each time.
  func testAgainstAModel() {
    for seed in 1...20 as ClosedRange<UInt64> {
      var random = SeededRandom(seed: seed)
      let queue = TimerQueue()
      let log = Log()
      var model: [(time: Int64, number: Int, timer: any CallTimer)] = []
      var expected: [Int] = []
      var now: Int64 = 0
      for number in 0..<2_000 {
        switch random.index(below: 4) {
        case 0, 1:
          let time = now + Int64(random.index(below: 50))
          model.append((time, number, queue.schedule(at: time) { log.add(number) }))
        case 2 where !model.isEmpty:
          model.remove(at: random.index(below: model.count)).timer.cancel()
        default:
          now += Int64(random.index(below: 20))
          let due = model.filter { $0.time <= now }.sorted { ($0.time, $0.number) < ($1.time, $1.number) }
          expected += due.map(\.number)
          model.removeAll { $0.time <= now }
          self.fire(queue, dueBy: now)
        }
        XCTAssertEqual(queue.count, model.count)
        XCTAssertEqual(queue.nextTime, model.map(\.time).min())
      }
      XCTAssertEqual(log.all, expected, "seed \(seed)")
      XCTAssertGreaterThan(expected.count, 100)
    }
  }
}
