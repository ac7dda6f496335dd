import XCTest

@testable import ConnectChannels

/// Probes of addresses that have failed, and races that nobody needs any more.
final class AddressRaceProbeTests: XCTestCase {
  private var random = SeededRandom(seed: 1)
  private let one: EndpointAddress = .ip("10.0.0.1", port: 80)
  private let two: EndpointAddress = .ip("10.0.0.2", port: 80)

  private func race(_ addresses: EndpointAddress...) -> AddressRace {
    AddressRace(addresses, configuration: .init(backoff: ConnectionBackoff.Configuration(jitter: 0)))
  }

  private func cancelled(_ actions: [AddressRace.Action]) -> [UInt64] {
    actions.compactMap { if case .cancel(let attempt) = $0 { attempt.number } else { nil } }
  }

  private func begun(_ actions: [AddressRace.Action]) -> [EndpointAddress] {
    actions.compactMap { if case .connect(let attempt) = $0 { attempt.address } else { nil } }
  }

  func testProbesDuringTheBackoff() {
    var race = self.race(self.one)
    _ = race.connect(now: .zero, random: &self.random)
    _ = race.attemptFailed(race.pendingAttempts[0], error: "refused", now: .zero)
    XCTAssertEqual(race.state, .transientFailure)
    XCTAssertEqual(self.begun(race.probe(now: .milliseconds(10), random: &self.random)), [self.one])
    // The backoff goes on as it was.
    let actions = race.attemptFailed(race.pendingAttempts[0], error: "refused", now: .milliseconds(20))
    XCTAssertEqual(actions.first, .schedule(after: .milliseconds(980)))
  }

  /// Nothing answers: the first attempt has its full time, so that slow servers are reached.
  func testTheOldestAttemptIsKept() {
    for addresses in [[self.one], [self.one, self.two]] {
      var race = AddressRace(addresses, configuration: .init())
      _ = race.connect(now: .zero, random: &self.random)
      for step in 1...200 {
        let now = Duration.milliseconds(100 * step)
        _ = race.timerFired(now: now, random: &self.random)
        if step % 5 == 0 { _ = race.probe(now: now, random: &self.random) }
        // Those that follow a probe come with the timer.
        XCTAssertLessThan(race.pendingAttempts.count, 5 * addresses.count)
      }
      let kept = race.pendingAttempts.filter { $0.number <= addresses.count }
      XCTAssertEqual(Set(kept.map(\.address)), Set(addresses))
      // Its place goes to the next one.
      _ = race.attemptFailed(kept[0], error: "timed out", now: .seconds(20))
      let next = race.pendingAttempts.first { $0.address == kept[0].address }
      for step in 201...300 {
        let now = Duration.milliseconds(100 * step)
        _ = race.timerFired(now: now, random: &self.random)
        if step % 5 == 0 { _ = race.probe(now: now, random: &self.random) }
      }
      XCTAssertTrue(race.pendingAttempts.contains { $0 == next })
    }
  }

  /// A pass that is probed on and on never ends: it counts as failed all the same.
  func testProbesWithoutAnswerAreAFailure() {
    var race = self.race(self.one)
    _ = race.connect(now: .zero, random: &self.random)
    for _ in 0..<3 {
      let actions = race.probe(now: .seconds(1), random: &self.random)
      XCTAssertEqual(self.begun(actions), [self.one])
      XCTAssertEqual(self.cancelled(actions), [])
      XCTAssertEqual(race.state, .connecting)
    }
    let actions = race.probe(now: .seconds(2), random: &self.random)
    XCTAssertEqual(self.cancelled(actions), [2])
    let error = "10.0.0.1:80: no answer to several attempts to connect"
    XCTAssertTrue(actions.contains(.stateChanged(.transientFailure, error: error)), "\(actions)")
    XCTAssertEqual(race.lastError, error)
    // Once is enough.
    let more = race.probe(now: .seconds(3), random: &self.random)
    XCTAssertFalse(more.contains { if case .stateChanged = $0 { true } else { false } })
    // Any attempt may still succeed.
    _ = race.attemptSucceeded(race.pendingAttempts[0], now: .seconds(4))
    XCTAssertEqual(race.state, .ready)
    XCTAssertNil(race.lastError)
    XCTAssertEqual(race.pendingAttempts, [])
  }

  func testRest() {
    var race = self.race(self.one, self.two)
    XCTAssertEqual(race.rest(), [])
    _ = race.connect(now: .zero, random: &self.random)
    let attempt = race.pendingAttempts[0]
    XCTAssertEqual(race.rest(), [.cancel(attempt), .cancelTimer, .stateChanged(.idle, error: nil)])
    XCTAssertEqual(race.rest(), [])
    // A connection stays; attempts beside one in doubt end.
    _ = race.connect(now: .seconds(1), random: &self.random)
    let connection = race.pendingAttempts[0]
    _ = race.attemptSucceeded(connection, now: .seconds(1))
    XCTAssertEqual(race.rest(), [])
    _ = race.connectionIsSuspect()
    _ = race.timerFired(now: .seconds(2), random: &self.random)
    XCTAssertEqual(race.pendingAttempts.map(\.address), [self.two])
    XCTAssertEqual(self.cancelled(race.rest()), [3])
    XCTAssertEqual(race.connection, connection)
    XCTAssertEqual(race.pendingAttempts, [])
    // They begin again on demand.
    XCTAssertEqual(race.connectionIsSuspect(), [.schedule(after: .milliseconds(250))])
    let lost = race.connectionLost(connection, error: nil, hasServed: true, now: .seconds(3))
    XCTAssertEqual(lost, [.cancelTimer, .stateChanged(.idle, error: nil)])
  }
}
