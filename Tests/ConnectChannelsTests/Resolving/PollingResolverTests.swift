import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

final class PollingResolverTests: XCTestCase {
  private typealias Answer = Result<ResolverUpdate, ConnectError>

  /// A source that a test answers for.
  private final class Source: Sendable {
    private let looks = Mutex<[@Sendable (Answer) -> Void]>([])
    let cancellations = Mutex(0)

    var count: Int { self.looks.withLock { $0.count } }

    func look(_ report: @escaping @Sendable (Answer) -> Void) {
      self.looks.withLock { $0.append(report) }
    }

    func answer(_ number: Int, _ answer: Answer) {
      guard let look = self.looks.withLock({ $0.dropFirst(number).first }) else {
        return XCTFail("there is no look \(number)")
      }
      look(answer)
    }
  }

  private let executor = VirtualExecutor()
  private let source = Source()

  private func watch(seed: UInt64? = 1) -> WatchRecord {
    let source = self.source
    return WatchRecord(PollingResolver(seed: seed) { _, _, report in source.look(report) }, on: self.executor)
  }

  private func update(_ address: String, timeToLive: Duration? = nil) -> Answer {
    .success(ResolverUpdate(endpoints: [Endpoint(address)!], timeToLive: timeToLive))
  }

  /// Answers a look, and waits until that has been dealt with.
  private func answer(_ number: Int, _ answer: Answer) {
    self.source.answer(number, answer)
    self.executor.runUntilIdle()
  }

  func testTimeToLive() {
    let watch = self.watch()
    XCTAssertEqual(self.source.count, 1)
    self.answer(0, self.update("10.0.0.1:1", timeToLive: .seconds(60)))
    XCTAssertEqual(watch.texts, ["10.0.0.1:1"])
    XCTAssertEqual(self.executor.scheduled, [.seconds(60)])
    self.executor.advance(by: .seconds(60))
    XCTAssertEqual(self.source.count, 2)
    self.answer(1, self.update("10.0.0.2:1"))
    XCTAssertEqual(watch.texts, ["10.0.0.1:1", "10.0.0.2:1"])
    XCTAssertEqual(self.executor.scheduled, [])
  }

  func testRequestsAreAtLeast30SecondsApart() {
    let watch = self.watch()
    self.answer(0, self.update("10.0.0.1:1"))
    for _ in 0..<3 { watch.resolveAgain() }
    XCTAssertEqual(self.source.count, 1)
    self.executor.advance(by: .seconds(30))
    XCTAssertEqual(self.source.count, 2)
    // Asked for while a look is under way, whose answer may be older.
    watch.resolveAgain()
    self.answer(1, self.update("10.0.0.1:1"))
    XCTAssertEqual(self.source.count, 2)
    self.executor.advance(by: .seconds(30))
    XCTAssertEqual(self.source.count, 3)
  }

  func testFailuresBackOff() {
    let watch = self.watch()
    for (number, base) in [1, 1.6, 2.56, 4.096].enumerated() {
      let start = self.executor.now
      self.answer(number, .failure(ConnectError(code: .unavailable, message: "\(number)")))
      XCTAssertEqual(watch.texts.last, "unavailable: \(number)")
      XCTAssertEqual(self.executor.scheduled.count, 1)
      let delay = ((self.executor.scheduled.first ?? .zero) - start) / .seconds(1)
      XCTAssertGreaterThanOrEqual(delay, base * 0.79)
      XCTAssertLessThanOrEqual(delay, base * 1.21)
      // A backoff is not cut short.
      watch.resolveAgain()
      XCTAssertEqual(self.source.count, number + 1)
      self.executor.advanceToNext()
      XCTAssertEqual(self.source.count, number + 2)
    }
    self.answer(4, self.update("10.0.0.1:1"))
    XCTAssertEqual(self.executor.scheduled, [])
  }

  func testAnswersWithoutEndpointsBackOff() {
    let watch = self.watch()
    self.answer(0, self.update("10.0.0.1:1"))
    watch.resolveAgain()
    self.executor.advance(by: .seconds(30))
    for number in 1...3 {
      self.answer(number, .success(ResolverUpdate(endpoints: [])))
      XCTAssertEqual(watch.texts.last, "none")
      XCTAssertEqual(self.executor.scheduled.count, 1, "nothing else would ask again")
      self.executor.advanceToNext()
      XCTAssertEqual(self.source.count, number + 2)
    }
    XCTAssertGreaterThan(self.executor.now, .seconds(34))
    XCTAssertLessThan(self.executor.now, .seconds(37))
  }

  func testTimeToLiveThatEndsBeforeTheBackoff() {
    let watch = self.watch()
    for number in 0..<12 {
      self.answer(number, .success(ResolverUpdate(endpoints: [], timeToLive: .seconds(10))))
      self.executor.advanceToNext()
    }
    let start = self.executor.now
    self.answer(12, .success(ResolverUpdate(endpoints: [], timeToLive: .seconds(10))))
    XCTAssertEqual(self.executor.scheduled, [start + .seconds(10)])
    XCTAssertEqual(watch.texts.count, 13)
  }

  func testSeed() {
    func delays(_ seed: UInt64?) -> [Duration] {
      let executor = VirtualExecutor()
      let resolver = PollingResolver(seed: seed) { _, _, report in
        report(.failure(ConnectError(code: .unavailable)))
      }
      let watch = WatchRecord(resolver, on: executor)
      var times: [Duration] = []
      for _ in 0..<5 {
        times += executor.scheduled
        executor.advanceToNext()
      }
      XCTAssertEqual(watch.texts.count, 6)
      return times
    }
    XCTAssertEqual(delays(1), delays(1))
    XCTAssertNotEqual(delays(1), delays(2))
    XCTAssertNotEqual(delays(nil), delays(nil))
  }

  func testALookThatNeverEndsIsTheOnlyOne() {
    let watch = self.watch()
    for _ in 0..<10 {
      watch.resolveAgain()
      self.executor.advance(by: .seconds(600))
    }
    XCTAssertEqual(self.source.count, 1)
  }

  func testASecondAnswerOfALookDoesNotCount() {
    let watch = self.watch()
    self.answer(0, self.update("10.0.0.1:1", timeToLive: .seconds(60)))
    self.answer(0, self.update("10.0.0.2:1"))
    self.executor.advance(by: .seconds(60))
    self.answer(0, self.update("10.0.0.3:1"))
    XCTAssertEqual(watch.texts, ["10.0.0.1:1"])
    self.answer(1, self.update("10.0.0.4:1"))
    XCTAssertEqual(watch.texts, ["10.0.0.1:1", "10.0.0.4:1"])
  }

  func testReportsMayCallTheWatch() {
    let watch = Mutex<(any ResolverWatch)?>(nil)
    let source = self.source
    let executor = self.executor
    let resolver = PollingResolver(seed: 1) { _, _, report in source.look(report) }
    let started = executor.sync {
      resolver.watch(Origin(scheme: .http, host: "a", port: 1), on: executor) { report in
        let watch = watch.withLock { $0 }
        if case .success = report { watch?.resolveAgain() } else { watch?.cancel() }
      }
    }
    watch.withLock { $0 = started }
    self.answer(0, self.update("10.0.0.1:1", timeToLive: .seconds(60)))
    XCTAssertEqual(self.executor.scheduled, [.seconds(30)], "earlier than the time to live")
    self.executor.advance(by: .seconds(30))
    self.answer(1, .failure(ConnectError(code: .unavailable)))
    XCTAssertEqual(self.executor.scheduled, [])
    watch.withLock { $0 = nil }
  }

  func testNothingComesAfterCancelling() {
    let watch = self.watch()
    self.answer(0, self.update("10.0.0.1:1", timeToLive: .seconds(60)))
    watch.cancel()
    XCTAssertEqual(self.executor.scheduled, [])
    watch.resolveAgain()
    XCTAssertEqual(self.source.count, 1)

    let second = self.watch()
    second.cancel()
    self.answer(1, self.update("10.0.0.1:1", timeToLive: .seconds(60)))
    XCTAssertEqual(second.texts, [])
    XCTAssertEqual(self.executor.scheduled, [])
  }

  func testCancellingCancelsTheLook() {
    let source = self.source
    let resolver = PollingResolver(
      minimumInterval: .seconds(30),
      cancellable: { _, _, report in
        source.look(report)
        return { source.cancellations.withLock { $0 += 1 } }
      }
    )
    let first = WatchRecord(resolver, on: self.executor)
    first.cancel()
    first.cancel()
    XCTAssertEqual(source.cancellations.withLock { $0 }, 1)
    let second = WatchRecord(resolver, on: self.executor)
    self.answer(1, self.update("10.0.0.1:1"))
    XCTAssertEqual(source.cancellations.withLock { $0 }, 1)
    // It may have left something to do.
    second.cancel()
    second.cancel()
    XCTAssertEqual(source.cancellations.withLock { $0 }, 2)
  }

  func testAWatchThatIsDroppedEnds() {
    var watch: WatchRecord? = self.watch()
    self.answer(0, self.update("10.0.0.1:1", timeToLive: .seconds(60)))
    XCTAssertEqual(watch?.texts.count, 1)
    watch?.drop()
    watch = nil
    self.executor.advance(by: .seconds(600))
    XCTAssertEqual(self.source.count, 1)
  }
}
