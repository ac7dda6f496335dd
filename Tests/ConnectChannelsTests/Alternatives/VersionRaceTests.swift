import XCTest

@testable import ConnectChannels

/// Who begins, wins and is given up when QUIC and TCP race.
final class VersionRaceTests: XCTestCase {
  private var race = VersionRace()

  private func assert(
    _ actions: [VersionRace.Action],
    _ expected: VersionRace.Action...,
    line: UInt = #line
  ) {
    XCTAssertEqual(actions, expected, line: line)
  }

  func testQUICWinsBeforeTCPBegins() {
    self.assert(self.race.start(), .begin(.quic), .schedule(.headStart))
    self.assert(self.race.ready(.quic), .cancelTimer, .win(.quic))
    self.assert(self.race.timerFired())
    self.assert(self.race.abandon())
  }

  func testQUICWinsAgainstTCP() {
    _ = self.race.start()
    self.assert(self.race.timerFired(), .begin(.tcp))
    self.assert(self.race.ready(.quic), .abandon(.tcp), .win(.quic))
    self.assert(self.race.ready(.tcp))
    self.assert(self.race.failed(.tcp))
  }

  func testTCPWinsAndQUICFollows() {
    _ = self.race.start()
    _ = self.race.timerFired()
    self.assert(self.race.ready(.tcp), .win(.tcp))
    self.assert(self.race.ready(.quic), .replaceTCP)
    self.assert(self.race.failed(.quic))
  }

  func testTCPWinsAndQUICFails() {
    _ = self.race.start()
    _ = self.race.timerFired()
    _ = self.race.ready(.tcp)
    self.assert(self.race.failed(.quic), .isBroken)
    self.assert(self.race.abandon())
  }

  func testQUICFailsAtOnce() {
    _ = self.race.start()
    self.assert(self.race.failed(.quic), .cancelTimer, .begin(.tcp))
    self.assert(self.race.timerFired())
    self.assert(self.race.ready(.tcp), .win(.tcp), .isBroken)
  }

  /// A server that is down says nothing of HTTP/3.
  func testBothFail() {
    _ = self.race.start()
    _ = self.race.failed(.quic)
    self.assert(self.race.failed(.tcp), .fail)
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.timerFired()
    self.assert(self.race.failed(.tcp), .schedule(.gracePeriod))
    self.assert(self.race.failed(.quic), .cancelTimer, .fail)
  }

  func testTCPFailsAndQUICWins() {
    _ = self.race.start()
    _ = self.race.timerFired()
    self.assert(self.race.failed(.tcp), .schedule(.gracePeriod))
    self.assert(self.race.ready(.quic), .cancelTimer, .win(.quic))
  }

  func testQUICDoesNotHoldUpTheFailureOfTCP() {
    _ = self.race.start()
    _ = self.race.timerFired()
    _ = self.race.failed(.tcp)
    self.assert(self.race.timerFired(), .abandon(.quic), .fail)
    self.assert(self.race.ready(.quic))
    self.assert(self.race.abandon())
  }

  func testAbandoned() {
    _ = self.race.start()
    self.assert(self.race.abandon(), .cancelTimer, .abandon(.quic))
    self.assert(self.race.failed(.quic))
    self.assert(self.race.ready(.quic))
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.timerFired()
    self.assert(self.race.abandon(), .abandon(.quic), .abandon(.tcp))
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.timerFired()
    _ = self.race.ready(.tcp)
    // The connection over TCP is not the race's any more.
    self.assert(self.race.abandon(), .abandon(.quic))
  }

  func testUpgrade() {
    self.assert(self.race.startUpgrade(), .begin(.quic))
    self.assert(self.race.ready(.quic), .replaceTCP)
    self.race = VersionRace()
    _ = self.race.startUpgrade()
    self.assert(self.race.failed(.quic), .isBroken)
    self.race = VersionRace()
    _ = self.race.startUpgrade()
    self.assert(self.race.abandon(), .abandon(.quic))
  }

  // MARK: Early data

  /// The race goes on until the server has answered.
  func testEarlyQUICIsProven() {
    _ = self.race.start()
    self.assert(self.race.early(), .win(.quic))
    self.assert(self.race.ready(.quic), .cancelTimer)
    self.assert(self.race.timerFired())
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.early()
    self.assert(self.race.timerFired(), .begin(.tcp))
    self.assert(self.race.ready(.quic), .abandon(.tcp))
    self.assert(self.race.ready(.tcp))
  }

  func testTCPIsReadyBeforeEarlyQUICIsProven() {
    _ = self.race.start()
    _ = self.race.early()
    _ = self.race.timerFired()
    self.assert(self.race.ready(.tcp), .replaceQUIC)
    self.assert(self.race.didReplaceQUIC(), .begin(.quic))
    self.assert(self.race.didReplaceQUIC())
    var other = self.race
    self.assert(self.race.ready(.quic), .replaceTCP)
    self.assert(other.failed(.quic), .isBroken)
  }

  func testEarlyQUICEnds() {
    _ = self.race.start()
    _ = self.race.early()
    self.assert(self.race.winnerEnded(), .cancelTimer)
    self.assert(self.race.ready(.quic))
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.early()
    _ = self.race.timerFired()
    self.assert(self.race.winnerEnded(), .abandon(.tcp))
  }

  /// An early connection has its own limit.
  func testTCPFailsBesideEarlyQUIC() {
    _ = self.race.start()
    _ = self.race.early()
    _ = self.race.timerFired()
    self.assert(self.race.failed(.tcp))
    self.assert(self.race.ready(.quic))
  }

  /// Calls do not leave TCP, and an attempt does not succeed, for a server that has not answered.
  func testEarlyQUICThatIsLate() {
    _ = self.race.start()
    _ = self.race.timerFired()
    _ = self.race.ready(.tcp)
    self.assert(self.race.early())
    self.assert(self.race.ready(.quic), .replaceTCP)
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.timerFired()
    _ = self.race.failed(.tcp)
    self.assert(self.race.early())
    self.assert(self.race.timerFired(), .abandon(.quic), .fail)
  }

  /// What ends with TCP may say something if QUIC had a head start.
  func testTCPEnds() {
    _ = self.race.start()
    self.assert(self.race.winnerEnded(), .cancelTimer, .abandon(.quic))
    self.race = VersionRace()
    _ = self.race.start()
    _ = self.race.timerFired()
    _ = self.race.ready(.tcp)
    self.assert(self.race.winnerEnded(), .abandon(.quic), .isUnjudged)
    self.assert(self.race.winnerEnded())
    self.race = VersionRace()
    _ = self.race.startUpgrade()
    self.assert(self.race.winnerEnded(), .abandon(.quic))
  }

  /// Each order of events: one end at most, and nothing that has begun is left over.
  func testAllOrders() {
    var random = SeededRandom(seed: 3)
    for _ in 0..<20_000 {
      var race = VersionRace()
      var running: Set<VersionRace.Transport> = []
      var ends = 0
      var isTimerPending = false
      // Early QUIC is the attempt's connection, and no longer the race's.
      var isEarly = false
      func run(_ actions: [VersionRace.Action]) {
        for action in actions {
          switch action {
          case .begin(let transport): XCTAssertTrue(running.insert(transport).inserted)
          case .abandon(let transport): XCTAssertNotNil(running.remove(transport))
          case .schedule:
            XCTAssertFalse(isTimerPending)
            isTimerPending = true
          case .cancelTimer:
            XCTAssertTrue(isTimerPending)
            isTimerPending = false
          case .win, .fail: ends += 1
          case .replaceQUIC:
            isEarly = false
            run(race.didReplaceQUIC())
          case .replaceTCP, .isBroken, .isUnjudged: break
          }
        }
      }
      run(Bool.random(using: &random) ? race.start() : race.startUpgrade())
      let isUpgrade = !isTimerPending
      for _ in 0..<6 {
        let transport: VersionRace.Transport = Bool.random(using: &random) ? .quic : .tcp
        switch Int.random(in: 0..<7, using: &random) {
        case 0, 1:
          if isTimerPending {
            isTimerPending = false
            run(race.timerFired())
          }
        case 2: if running.remove(transport) != nil { run(race.ready(transport)) }
        case 3:
          if isEarly {
            isEarly = false
            run(Bool.random(using: &random) ? race.ready(.quic) : race.winnerEnded())
          } else if running.contains(.quic) {
            let actions = race.early()
            if actions.contains(.win(.quic)) {
              running.remove(.quic)
              isEarly = true
            }
            run(actions)
          }
        case 4, 5: if running.remove(transport) != nil { run(race.failed(transport)) }
        default: break
        }
      }
      if ends == 0, !isUpgrade, !isEarly { XCTAssertTrue(isTimerPending || !running.isEmpty) }
      run(race.abandon())
      XCTAssertTrue(running.isEmpty)
      XCTAssertFalse(isTimerPending)
      XCTAssertLessThanOrEqual(ends, isUpgrade ? 0 : 1)
    }
  }
}
