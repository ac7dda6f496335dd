import XCTest

@testable import ConnectChannels

final class ResolutionScheduleTests: XCTestCase {
  private typealias Schedule = ResolutionSchedule<Int>

  private struct Failure: Error, CustomStringConvertible {
    var description: String { "failure" }
  }

  /// The actions as text, times in seconds.
  private func texts(_ actions: [Schedule.Action]) -> [String] {
    actions.map { action in
      switch action {
      case .resolve: "resolve"
      case .wake(let time): "wake \(time / .seconds(1))"
      case .cancelWake: "cancel"
      case .publish(let update): "publish \(update)"
      case .publishFailure(let error): "fail \(error)"
      case .keep(let update, let error): "keep \(update) \(error)"
      }
    }
  }

  func testTimeToLive() {
    var schedule = Schedule()
    XCTAssertEqual(self.texts(schedule.start(now: .zero)), ["resolve"])
    XCTAssertEqual(self.texts(schedule.start(now: .zero)), [])
    XCTAssertEqual(
      self.texts(schedule.succeeded(1, timeToLive: .seconds(60), now: .seconds(1))),
      ["publish 1", "wake 61.0"]
    )
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(60))), ["wake 61.0"], "early")
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(61))), ["cancel", "resolve"])
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(62))), [])
    XCTAssertEqual(
      self.texts(schedule.succeeded(2, timeToLive: .zero, now: .seconds(62))),
      ["publish 2", "wake 67.0"]
    )
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(67))), ["cancel", "resolve"])
    XCTAssertEqual(self.texts(schedule.succeeded(3, timeToLive: nil, now: .seconds(68))), ["publish 3"])
    XCTAssertEqual(schedule.lastGood, 3)
  }

  func testTheLongestTimeToLiveDoesNotOverflow() {
    var schedule = Schedule()
    _ = schedule.start(now: .seconds(1))
    let longest = Duration(secondsComponent: .max, attosecondsComponent: 0)
    let actions = schedule.succeeded(1, timeToLive: longest, now: .seconds(1))
    XCTAssertEqual(self.texts(actions), ["publish 1", "wake 3153600001.0"])
  }

  func testEmptyAnswersBackOff() {
    var schedule = Schedule()
    _ = schedule.start(now: .zero)
    let first = schedule.succeeded(1, isEmpty: true, timeToLive: nil, now: .zero, random: 0.5)
    XCTAssertEqual(self.texts(first), ["publish 1", "wake 1.0"])
    XCTAssertEqual(self.texts(schedule.request(now: .milliseconds(500))), [])
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(1))), ["cancel", "resolve"])
    let second = schedule.succeeded(2, isEmpty: true, timeToLive: .seconds(6), now: .seconds(1), random: 0.5)
    XCTAssertEqual(self.texts(second), ["publish 2", "wake 7.0", "wake 2.6"])
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(3))), ["cancel", "resolve"])
    XCTAssertEqual(self.texts(schedule.succeeded(3, timeToLive: nil, now: .seconds(4))), ["publish 3"])
    XCTAssertEqual(self.texts(schedule.request(now: .seconds(40))), ["resolve"])
  }

  func testRequestsAtMostEvery30Seconds() {
    var schedule = Schedule()
    XCTAssertEqual(self.texts(schedule.start(now: .seconds(100))), ["resolve"])
    _ = schedule.succeeded(1, timeToLive: .seconds(300), now: .seconds(101))
    XCTAssertEqual(self.texts(schedule.request(now: .seconds(110))), ["wake 130.0"])
    XCTAssertEqual(self.texts(schedule.request(now: .seconds(120))), [])
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(130))), ["cancel", "resolve"])
    XCTAssertEqual(self.texts(schedule.request(now: .seconds(131))), [], "kept until the answer is there")
    XCTAssertEqual(
      self.texts(schedule.succeeded(2, timeToLive: .seconds(10), now: .seconds(132))),
      ["publish 2", "wake 142.0"],
      "the TTL comes first"
    )
    XCTAssertEqual(self.texts(schedule.request(now: .seconds(161))), ["cancel", "resolve"])
  }

  func testBackoff() {
    var schedule = Schedule()
    var now = Duration.zero
    _ = schedule.start(now: now)
    var delays: [Double] = []
    for index in 0..<14 {
      let actions = schedule.failed(Failure(), now: now, random: index % 2 == 0 ? 0.5 : 1)
      guard case .wake(let time) = actions.last else { return XCTFail("\(actions)") }
      XCTAssertEqual(self.texts([actions[0]]), ["fail failure"])
      XCTAssertEqual(self.texts(schedule.request(now: now)), [], "a backoff is not cut short")
      delays.append((time - now) / .seconds(1))
      now = time
      XCTAssertEqual(self.texts(schedule.wake(now: now)), ["cancel", "resolve"])
    }
    for (index, delay) in delays.enumerated() {
      let wanted = min(pow(1.6, Double(index)), 120) * (index % 2 == 0 ? 1 : 1.2)
      XCTAssertEqual(delay, wanted, accuracy: 1e-6)
    }
    _ = schedule.succeeded(1, timeToLive: nil, now: now)
    _ = schedule.request(now: now + .seconds(60))
    XCTAssertEqual(
      self.texts(schedule.failed(Failure(), now: now + .seconds(61), random: 0)).first,
      "keep 1 failure"
    )
    XCTAssertEqual(schedule.lastGood, 1)
  }

  func testStop() {
    var schedule = Schedule()
    _ = schedule.start(now: .zero)
    _ = schedule.succeeded(1, timeToLive: .seconds(60), now: .zero)
    XCTAssertEqual(self.texts(schedule.stop()), ["cancel"])
    XCTAssertEqual(self.texts(schedule.request(now: .seconds(100))), [])
    XCTAssertEqual(self.texts(schedule.wake(now: .seconds(100))), [])
    XCTAssertEqual(self.texts(schedule.start(now: .seconds(100))), ["resolve"])
    XCTAssertEqual(self.texts(schedule.stop()), [])
    XCTAssertEqual(self.texts(schedule.succeeded(2, timeToLive: .seconds(1), now: .seconds(101))), [])
    XCTAssertEqual(schedule.lastGood, 2)
    XCTAssertEqual(self.texts(schedule.failed(Failure(), now: .seconds(101), random: 0)), [], "nothing runs")
  }

  /// Random events: one resolution at a time, none too early, and always one ahead where there is a reason.
  func testRandomEvents() {
    for seed in 0..<500 {
      var random = SeededRandom(seed: UInt64(seed))
      var schedule = Schedule()
      var now = Duration.zero
      var isResolving = false
      var wake: Duration?
      var lastStart: Duration?
      var needsWake = false
      func note(_ actions: [Schedule.Action]) {
        for action in actions {
          switch action {
          case .resolve:
            XCTAssertFalse(isResolving, "seed \(seed)")
            if let lastStart {
              XCTAssertGreaterThanOrEqual(now - lastStart, .milliseconds(800), "seed \(seed)")
            }
            (isResolving, lastStart, needsWake) = (true, now, false)
          case .wake(let time):
            XCTAssertGreaterThanOrEqual(time, now, "seed \(seed)")
            wake = time
          case .cancelWake: wake = nil
          case .publish, .publishFailure, .keep: break
          }
        }
      }
      note(schedule.start(now: now))
      for index in 0..<200 {
        now += .milliseconds(Int.random(in: 0..<20_000, using: &random))
        if let due = wake, due <= now {
          wake = nil
          now = due
          note(schedule.wake(now: now))
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
          note(schedule.request(now: now))
          needsWake = !isResolving
        case 1 where isResolving:
          isResolving = false
          let ttl =
            Bool.random(using: &random) ? Duration.seconds(Int.random(in: 0..<100, using: &random)) : nil
          needsWake = ttl != nil
          note(schedule.succeeded(index, timeToLive: ttl, now: now))
        case 2 where isResolving:
          isResolving = false
          needsWake = true
          note(schedule.failed(Failure(), now: now, random: .random(in: 0...1, using: &random)))
        default:
          note(schedule.wake(now: now))
        }
        if needsWake { XCTAssertTrue(isResolving || wake != nil, "no resolution is ahead; seed \(seed)") }
      }
    }
  }
}
