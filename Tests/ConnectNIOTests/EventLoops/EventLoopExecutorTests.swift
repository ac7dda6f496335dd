import Connect
import ConnectChannels
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import XCTest

@testable import ConnectNIO

final class EventLoopExecutorTests: XCTestCase {
  /// What has run, in order. Confined to the thread of the test.
  private final class Log: @unchecked Sendable {
    var entries: [Int] = []
  }

  func testTimersRunInOrderAndOnce() {
    let loop = EmbeddedEventLoop()
    let executor = EventLoopExecutor(loop)
    let log = Log()
    for (entry, delay) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 0), (6, -5)] {
      _ = executor.schedule(after: .milliseconds(delay)) { log.entries.append(entry) }
    }
    loop.advanceTime(by: .nanoseconds(1))
    XCTAssertEqual(log.entries, [5, 6])
    loop.advanceTime(by: .milliseconds(10))
    XCTAssertEqual(log.entries, [5, 6, 2, 4])
    loop.advanceTime(by: .milliseconds(30))
    XCTAssertEqual(log.entries, [5, 6, 2, 4, 3, 1])
    loop.advanceTime(by: .seconds(1))
    XCTAssertEqual(log.entries.count, 6)
  }

  /// Once the executor has left its event loop, work and timers of before and after run elsewhere, in order.
  func testLeavingTheEventLoop() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let executor = EventLoopExecutor(loop)
    let log = Recorded()
    let cancelled = Mutex<(any CallTimer)?>(nil)
    executor.execute {
      _ = executor.schedule(after: .milliseconds(50)) { log.add(executor.isCurrent ? 101 : -1) }
      let timer = executor.schedule(after: .milliseconds(40)) { log.add(-2) }
      cancelled.withLock { $0 = timer }
    }
    for entry in 0..<100 { executor.execute { log.add(executor.isCurrent ? entry : -1) } }
    async let again: Void = executor.leaveEventLoop()
    await executor.leaveEventLoop()
    await again
    try await group.shutdownGracefully()
    executor.execute {
      log.add(executor.isCurrent && !loop.inEventLoop ? 100 : -1)
      cancelled.withLock { $0 }?.cancel()
      _ = executor.schedule(after: .milliseconds(60)) { log.add(102) }
    }
    try await eventually("all has run") { log.all.count == 103 }
    XCTAssertEqual(log.all, Array(0...102))
    await executor.leaveEventLoop()
  }

  private final class Recorded: Sendable {
    private let entries = Mutex<[Int]>([])
    var all: [Int] { self.entries.withLock { $0 } }
    func add(_ entry: Int) { self.entries.withLock { $0.append(entry) } }
  }

  func testCancelledTimersDoNotRun() {
    let loop = EmbeddedEventLoop()
    let executor = EventLoopExecutor(loop)
    let log = Log()
    var random = SeededRandom(seed: 7)
    var timers: [any CallTimer] = []
    for entry in 0..<1_000 {
      let delay = Duration.milliseconds(Int.random(in: 1...1_000, using: &random))
      timers.append(executor.schedule(after: delay) { log.entries.append(entry) })
    }
    for entry in 0..<1_000 where entry % 5 != 0 {
      timers[entry].cancel()
      timers[entry].cancel()
    }
    loop.advanceTime(by: .seconds(2))
    XCTAssertEqual(log.entries.sorted(), Array(stride(from: 0, to: 1_000, by: 5)))
    for timer in timers { timer.cancel() }
  }

  func testTimerSetByATimer() {
    let loop = EmbeddedEventLoop()
    let executor = EventLoopExecutor(loop)
    let log = Log()
    let later = executor.schedule(after: .milliseconds(20)) { log.entries.append(9) }
    _ = executor.schedule(after: .milliseconds(10)) {
      log.entries.append(1)
      later.cancel()
      _ = executor.schedule(after: .milliseconds(5)) { log.entries.append(2) }
    }
    loop.advanceTime(by: .milliseconds(15))
    XCTAssertEqual(log.entries, [1, 2])
    loop.advanceTime(by: .seconds(1))
    XCTAssertEqual(log.entries, [1, 2])
  }

  func testCancelledTimerReleasesItsWork() {
    final class Token: Sendable {}
    let loop = EmbeddedEventLoop()
    let executor = EventLoopExecutor(loop)
    weak var held: Token?
    let timer: any CallTimer
    do {
      let token = Token()
      held = token
      timer = executor.schedule(after: .seconds(3600)) { _ = token }
    }
    XCTAssertNotNil(held)
    timer.cancel()
    XCTAssertNil(held)
  }

  func testNowIsTheLoopsTime() {
    let loop = EmbeddedEventLoop()
    let executor = EventLoopExecutor(loop)
    let start = executor.now
    loop.advanceTime(by: .milliseconds(1_500))
    XCTAssertEqual(executor.now - start, .milliseconds(1_500))
    XCTAssertTrue(executor.isCurrent)
  }
}
