import XCTest

@testable import ConnectChannels

final class AddressRaceTests: XCTestCase {
  private var random = SeededRandom(seed: 1)
  private let one: EndpointAddress = .ip("10.0.0.1", port: 80)
  private let two: EndpointAddress = .ip("10.0.0.2", port: 80)
  private let three: EndpointAddress = .ip("10.0.0.3", port: 80)

  private func race(_ addresses: EndpointAddress..., delay: Duration = .milliseconds(250)) -> AddressRace {
    let backoff = ConnectionBackoff.Configuration(jitter: 0)
    return AddressRace(
      addresses,
      configuration: .init(attemptDelay: delay, backoff: backoff)
    )
  }

  private func attempt(_ number: UInt64, _ address: EndpointAddress, limit: Duration = .seconds(20))
    -> ConnectionAttempt
  {
    ConnectionAttempt(number: number, address: address, timeLimit: limit)
  }

  // MARK: - Order

  func testFamiliesInTurn() throws {
    let table: [(String, String)] = [
      ("1.0.0.1:1,1.0.0.2:1", "1.0.0.1:1,1.0.0.2:1"),
      ("[::1]:1,[::2]:1,1.0.0.1:1,1.0.0.2:1", "[::1]:1,1.0.0.1:1,[::2]:1,1.0.0.2:1"),
      ("1.0.0.1:1,1.0.0.2:1,1.0.0.3:1,[::1]:1", "1.0.0.1:1,[::1]:1,1.0.0.2:1,1.0.0.3:1"),
      ("1.0.0.1:1,1.0.0.1:1,[::1]:1,[::1]:1", "1.0.0.1:1,[::1]:1"),
      ("unix:/a,[::1]:1,[::2]:1,1.0.0.1:1", "unix:/a,[::1]:1,1.0.0.1:1,[::2]:1"),
    ]
    for (text, expected) in table {
      let addresses = try XCTUnwrap(Endpoint(text)).addresses
      XCTAssertEqual(Endpoint(addresses: AddressOrder.interleaved(addresses)).description, expected)
    }
    XCTAssertEqual(AddressOrder.interleaved([]), [])
  }

  func testDelayIsBroughtIntoRange() {
    let delays: [Duration] = [.zero, .milliseconds(100), .milliseconds(250), .seconds(2), .seconds(3)]
    XCTAssertEqual(
      delays.map { AddressRace.Configuration(attemptDelay: $0).attemptDelay },
      [.milliseconds(100), .milliseconds(100), .milliseconds(250), .seconds(2), .seconds(2)]
    )
  }

  // MARK: - One pass

  func testTheFirstSuccessCancelsTheRest() {
    var race = self.race(self.one, self.two, self.three)
    XCTAssertEqual(race.state, .idle)
    XCTAssertEqual(
      race.connect(now: .zero, random: &self.random),
      [
        .connect(self.attempt(1, self.one)), .schedule(after: .milliseconds(250)),
        .stateChanged(.connecting, error: nil),
      ]
    )
    XCTAssertEqual(race.connect(now: .zero, random: &self.random), [])
    XCTAssertEqual(
      race.timerFired(now: .milliseconds(250), random: &self.random),
      [.connect(self.attempt(2, self.two)), .schedule(after: .milliseconds(250))]
    )
    XCTAssertEqual(
      race.attemptSucceeded(self.attempt(2, self.two), now: .milliseconds(300)),
      [.cancel(self.attempt(1, self.one)), .cancelTimer, .stateChanged(.ready, error: nil)]
    )
    XCTAssertEqual(race.connection, self.attempt(2, self.two))
    // What was cancelled comes late.
    XCTAssertEqual(
      race.attemptSucceeded(self.attempt(1, self.one), now: .milliseconds(300)),
      [.cancel(self.attempt(1, self.one))]
    )
    XCTAssertEqual(race.attemptFailed(self.attempt(1, self.one), error: "reset", now: .seconds(1)), [])
    XCTAssertEqual(race.timerFired(now: .seconds(1), random: &self.random), [])
  }

  func testAFailureStartsTheNextAtOnce() {
    var race = self.race(self.one, self.two)
    _ = race.connect(now: .zero, random: &self.random)
    XCTAssertEqual(
      race.attemptFailed(self.attempt(1, self.one), error: "refused", now: .milliseconds(1)),
      // The last address needs no timer.
      [.connect(self.attempt(2, self.two)), .cancelTimer]
    )
  }

  func testFailureOfAllIsStickyAndTriesAgain() {
    var race = self.race(self.one, self.two)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptFailed(self.attempt(1, self.one), error: "refused", now: .milliseconds(1))
    XCTAssertEqual(
      race.attemptFailed(self.attempt(2, self.two), error: "refused", now: .milliseconds(400)),
      [
        // A second after the start of the pass.
        .schedule(after: .milliseconds(600)),
        .stateChanged(.transientFailure, error: "10.0.0.2:80: refused"),
      ]
    )
    XCTAssertEqual(race.connect(now: .milliseconds(500), random: &self.random), [])
    XCTAssertEqual(
      race.timerFired(now: .seconds(1), random: &self.random),
      [.connect(self.attempt(3, self.one)), .schedule(after: .milliseconds(250))]
    )
    XCTAssertEqual(race.state, .transientFailure)
    _ = race.attemptFailed(self.attempt(3, self.one), error: "refused", now: .seconds(2))
    XCTAssertEqual(
      race.attemptFailed(self.attempt(4, self.two), error: "no route", now: .seconds(21)),
      // 1.6 s after the start of the pass is over.
      [.schedule(after: .zero), .stateChanged(.transientFailure, error: "10.0.0.2:80: no route")]
    )
    _ = race.timerFired(now: .seconds(21), random: &self.random)
    XCTAssertEqual(
      race.attemptSucceeded(self.attempt(5, self.one), now: .seconds(21)),
      [.cancelTimer, .stateChanged(.ready, error: nil)]
    )
    // The backoff begins again.
    XCTAssertEqual(
      race.connectionLost(self.attempt(5, self.one), error: "GOAWAY", hasServed: false, now: .seconds(29)),
      [.stateChanged(.idle, error: "GOAWAY")]
    )
    _ = race.connect(now: .seconds(30), random: &self.random)
    _ = race.attemptFailed(self.attempt(6, self.one), error: "refused", now: .seconds(30))
    let actions = race.attemptFailed(self.attempt(7, self.two), error: "refused", now: .seconds(30))
    XCTAssertEqual(actions.first, .schedule(after: .seconds(1)))
  }

  func testLongBackoffGivesAttemptsMoreTime() {
    var race = self.race(self.one)
    var limits: [Duration] = []
    var now = Duration.zero
    var actions = race.connect(now: now, random: &self.random)
    for _ in 0..<12 {
      guard case .connect(let attempt) = actions.first else { return XCTFail() }
      limits.append(attempt.timeLimit)
      _ = race.attemptFailed(attempt, error: "timeout", now: now)
      now += .seconds(200)
      actions = race.timerFired(now: now, random: &self.random)
    }
    XCTAssertEqual(limits.first, .seconds(20))
    XCTAssertEqual(limits.last, .seconds(120))
    XCTAssertEqual(limits, limits.sorted())
  }

  // MARK: - Losses

  /// However soon a server renews connections that have served, the next one is opened at once.
  func testAConnectionThatHasServedIsReplacedAtOnce() {
    var race = self.race(self.one)
    for number in UInt64(1)...100 {
      let attempt = self.attempt(number, self.one)
      let now = Duration.milliseconds(Int(number))
      XCTAssertEqual(race.connect(now: now, random: &self.random).first, .connect(attempt))
      _ = race.attemptSucceeded(attempt, now: now)
      XCTAssertEqual(
        race.connectionLost(attempt, error: nil, hasServed: true, now: now),
        [.stateChanged(.idle, error: nil)]
      )
    }
  }

  /// Connections that serve nothing are replaced when a call needs one. Without a call, there is a backoff that grows.
  func testConnectionsThatServeNothing() {
    var race = self.race(self.one)
    var now = Duration.zero
    var pauses: [Duration] = []
    for number in UInt64(1)...5 {
      let attempt = self.attempt(number, self.one)
      XCTAssertEqual(race.pendingAttempts, number > 2 ? [attempt] : [])
      if number <= 2 {
        let actions = race.connect(isForCall: false, now: now, random: &self.random)
        XCTAssertEqual(actions.first, .connect(attempt))
      }
      _ = race.attemptSucceeded(attempt, now: now)
      let lost = race.connectionLost(attempt, error: "it broke", hasServed: false, now: now)
      XCTAssertEqual(lost, [.stateChanged(.idle, error: "it broke")])
      guard number > 1 else { continue }
      let resting = race.connect(isForCall: false, now: now, random: &self.random)
      guard case .schedule(let pause)? = resting.first else { return XCTFail("\(resting)") }
      XCTAssertEqual(resting.last, .stateChanged(.connecting, error: "it broke"))
      XCTAssertTrue(race.isResting)
      pauses.append(pause)
      now += pause
      _ = race.timerFired(now: now, random: &self.random)
    }
    for (pause, expected) in zip(pauses, [1_000, 1_600, 2_560, 4_096]) {
      XCTAssertLessThan(abs((pause - .milliseconds(expected)) / .milliseconds(1)), 0.01)
    }
    XCTAssertEqual(pauses.count, 4)
    _ = race.attemptSucceeded(self.attempt(6, self.one), now: now)
    _ = race.connectionLost(self.attempt(6, self.one), error: nil, hasServed: false, now: now)
    _ = race.connect(isForCall: false, now: now, random: &self.random)
    XCTAssertTrue(race.isResting)
    let forCall = race.connect(now: now, random: &self.random)
    XCTAssertEqual(forCall, [.connect(self.attempt(7, self.one)), .cancelTimer])
    _ = race.attemptSucceeded(self.attempt(7, self.one), now: now)
    // It serves: all is well again.
    _ = race.connectionLost(self.attempt(7, self.one), error: nil, hasServed: true, now: now)
    let next = race.connect(isForCall: false, now: now, random: &self.random)
    XCTAssertEqual(next.first, .connect(self.attempt(8, self.one)))
    let refused = race.attemptFailed(self.attempt(8, self.one), error: "refused", now: now)
    XCTAssertEqual(refused.first, .schedule(after: .seconds(1)))
  }

  func testAnOldConnectionThatServedNothingIsReplacedAtOnce() {
    var race = self.race(self.one)
    for number in UInt64(1)...4 {
      let now = Duration.seconds(Int(number) * 2)
      let attempt = self.attempt(number, self.one)
      XCTAssertEqual(race.connect(now: now, random: &self.random).first, .connect(attempt))
      _ = race.attemptSucceeded(attempt, now: now)
      _ = race.connectionLost(attempt, error: nil, hasServed: false, now: now + .seconds(1))
      XCTAssertEqual(race.state, .idle)
    }
  }

  // MARK: - Doubt

  private func doubtedRace(_ addresses: EndpointAddress...) -> AddressRace {
    let backoff = ConnectionBackoff.Configuration(jitter: 0)
    var race = AddressRace(addresses, configuration: .init(backoff: backoff))
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptSucceeded(self.attempt(1, self.one), now: .zero)
    return race
  }

  /// The connection is in doubt, and the other addresses are being tried.
  private func begin(_ race: inout AddressRace) {
    _ = race.connectionIsSuspect()
    _ = race.timerFired(now: .seconds(4), random: &self.random)
  }

  /// The connection is gone before anything else was tried: nothing is, before a call.
  func testAConnectionInDoubtIsLostAtOnce() {
    var race = self.doubtedRace(self.one, self.two)
    _ = race.connectionIsSuspect()
    XCTAssertEqual(
      race.connectionLost(self.attempt(1, self.one), error: nil, hasServed: true, now: .seconds(4)),
      [.cancelTimer, .stateChanged(.idle, error: nil)]
    )
    XCTAssertEqual(
      race.connect(now: .seconds(4), random: &self.random).first,
      .connect(self.attempt(2, self.one))
    )
  }

  /// The other addresses come first, the connection's own one last.
  func testAConnectionInDoubtRacesWithAllAddresses() {
    var race = self.doubtedRace(self.one, self.two, self.three)
    XCTAssertEqual(race.connectionIsSuspect(), [.schedule(after: .milliseconds(250))])
    XCTAssertEqual(race.connectionIsSuspect(), [])
    XCTAssertEqual(
      race.timerFired(now: .seconds(9), random: &self.random),
      [.connect(self.attempt(2, self.two)), .schedule(after: .milliseconds(250))]
    )
    XCTAssertEqual(race.state, .ready)
    XCTAssertEqual(
      race.attemptFailed(self.attempt(2, self.two), error: "refused", now: .seconds(10)),
      [.connect(self.attempt(3, self.three)), .schedule(after: .milliseconds(250))]
    )
    XCTAssertEqual(
      race.timerFired(now: .seconds(11), random: &self.random),
      [.connect(self.attempt(4, self.one))]
    )
    XCTAssertEqual(
      race.attemptSucceeded(self.attempt(3, self.three), now: .seconds(11)),
      [.cancel(self.attempt(4, self.one))]
    )
    XCTAssertEqual(race.connection, self.attempt(3, self.three))
    // The connection before is nobody's any more.
    let late = race.connectionLost(self.attempt(1, self.one), error: nil, hasServed: true, now: .seconds(12))
    XCTAssertEqual(late, [])
  }

  func testAnAnswerEndsTheDoubt() {
    var race = self.doubtedRace(self.one, self.two)
    _ = race.connectionIsSuspect()
    XCTAssertEqual(race.connectionIsAlive(), [.cancelTimer], "before anything was tried")
    XCTAssertEqual(race.timerFired(now: .seconds(9), random: &self.random), [])
    self.begin(&race)
    XCTAssertEqual(race.connectionIsAlive(), [.cancel(self.attempt(2, self.two)), .cancelTimer])
    XCTAssertEqual(race.connectionIsAlive(), [])
    XCTAssertEqual(race.connection, self.attempt(1, self.one))
    self.begin(&race)
    XCTAssertEqual(race.pendingAttempts, [self.attempt(3, self.two)])
  }

  func testWhatWasBegunInDoubtOutlivesTheConnection() {
    var race = self.doubtedRace(self.one, self.two)
    self.begin(&race)
    XCTAssertEqual(
      race.connectionLost(self.attempt(1, self.one), error: "dead", hasServed: true, now: .seconds(20)),
      [.stateChanged(.connecting, error: "dead")]
    )
    XCTAssertEqual(
      race.attemptSucceeded(self.attempt(2, self.two), now: .seconds(21)),
      [.cancelTimer, .stateChanged(.ready, error: nil)]
    )
  }

  func testAllAddressesFailBesideAConnectionInDoubt() {
    var race = self.doubtedRace(self.one, self.two)
    self.begin(&race)
    _ = race.attemptFailed(self.attempt(2, self.two), error: "refused", now: .seconds(5))
    XCTAssertEqual(race.attemptFailed(self.attempt(3, self.one), error: "refused", now: .seconds(5)), [])
    XCTAssertEqual(race.state, .ready)
    XCTAssertNil(race.lastError)
    XCTAssertEqual(race.connectionIsAlive(), [])
    XCTAssertEqual(race.connection, self.attempt(1, self.one))
  }

  func testOtherAddressesWhileInDoubt() {
    var race = self.doubtedRace(self.one, self.two)
    self.begin(&race)
    XCTAssertEqual(
      race.update([self.one, self.three], now: .seconds(5), random: &self.random).first,
      .cancel(self.attempt(2, self.two))
    )
    XCTAssertTrue(race.pendingAttempts.contains { $0.address == self.three || $0.address == self.one })
    let gone = race.update([self.three], now: .seconds(5), random: &self.random)
    XCTAssertTrue(gone.contains(.close(self.attempt(1, self.one))))
    XCTAssertEqual(race.pendingAttempts.map(\.address), [self.three])
    XCTAssertEqual(race.state, .connecting)
  }

  // MARK: - Other addresses

  func testAConnectionOutlivesAChange() {
    var race = self.race(self.one, self.two)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptSucceeded(self.attempt(1, self.one), now: .zero)
    XCTAssertEqual(race.update([self.three, self.one], now: .zero, random: &self.random), [])
    XCTAssertEqual(
      race.update([self.three], now: .zero, random: &self.random),
      [
        .close(self.attempt(1, self.one)), .connect(self.attempt(2, self.three)),
        .stateChanged(.connecting, error: nil),
      ]
    )
    XCTAssertEqual(
      race.connectionLost(self.attempt(1, self.one), error: nil, hasServed: true, now: .zero),
      []
    )
  }

  func testAttemptsOutliveAChange() {
    var race = self.race(self.one, self.two)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.timerFired(now: .milliseconds(250), random: &self.random)
    XCTAssertEqual(
      race.update([self.two, self.three], now: .milliseconds(300), random: &self.random),
      [.cancel(self.attempt(1, self.one)), .schedule(after: .milliseconds(250))]
    )
    XCTAssertEqual(
      race.timerFired(now: .milliseconds(550), random: &self.random),
      [.connect(self.attempt(3, self.three))]
    )
  }

  func testAnAddressThatHasFailedWaitsForTheNextPass() {
    var race = self.race(self.one, self.two)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptFailed(self.attempt(1, self.one), error: "refused", now: .zero)
    XCTAssertEqual(
      race.update([self.three, self.one, self.two], now: .zero, random: &self.random),
      [.schedule(after: .milliseconds(250))]
    )
    XCTAssertEqual(
      race.attemptFailed(self.attempt(2, self.two), error: "refused", now: .zero),
      [.connect(self.attempt(3, self.three)), .cancelTimer]
    )
    XCTAssertEqual(
      race.attemptFailed(self.attempt(3, self.three), error: "refused", now: .zero),
      [.schedule(after: .seconds(1)), .stateChanged(.transientFailure, error: "10.0.0.3:80: refused")]
    )
  }

  func testOnlyNewAddressesAreTriedDuringTheBackoff() {
    var race = self.race(self.one)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptFailed(self.attempt(1, self.one), error: "refused", now: .zero)
    XCTAssertEqual(race.update([self.one], now: .zero, random: &self.random), [])
    XCTAssertEqual(
      race.update([self.one, self.two], now: .milliseconds(300), random: &self.random),
      [.connect(self.attempt(2, self.two)), .cancelTimer]
    )
    XCTAssertEqual(
      race.attemptFailed(self.attempt(2, self.two), error: "refused", now: .milliseconds(400)),
      [
        .schedule(after: .milliseconds(600)),
        .stateChanged(.transientFailure, error: "10.0.0.2:80: refused"),
      ]
    )
    XCTAssertEqual(
      race.timerFired(now: .seconds(1), random: &self.random),
      [.connect(self.attempt(3, self.one)), .schedule(after: .milliseconds(250))]
    )
  }

  func testNoAddresses() {
    var race = self.race()
    let failure = AddressRace.Action.stateChanged(.transientFailure, error: "the endpoint has no addresses")
    XCTAssertEqual(race.connect(now: .zero, random: &self.random), [failure])
    XCTAssertEqual(
      race.update([self.one], now: .zero, random: &self.random).first,
      .connect(self.attempt(1, self.one))
    )
    XCTAssertEqual(race.state, .connecting)
    XCTAssertEqual(
      race.update([], now: .zero, random: &self.random),
      [.cancel(self.attempt(1, self.one)), failure]
    )
  }

  // MARK: - The end

  func testStopping() {
    var race = self.race(self.one, self.two)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptSucceeded(self.attempt(1, self.one), now: .zero)
    XCTAssertEqual(
      race.shutDown(),
      [.close(self.attempt(1, self.one)), .stateChanged(.shutdown, error: nil)]
    )
    XCTAssertEqual(race.shutDown(), [])
    XCTAssertEqual(race.connect(now: .zero, random: &self.random), [])
    XCTAssertEqual(race.update([self.three], now: .zero, random: &self.random), [])
  }
}
