import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// Endpoints that several channels, each on its executor, judge together.
final class SharedOutliersTests: XCTestCase {
  /// `@unchecked Sendable`: used on its executor, and by the test while nothing runs there.
  private final class Member: OutlierMember, @unchecked Sendable {
    let virtual: VirtualExecutor
    var executor: any CallExecutor { self.virtual }
    var outcomes: [Endpoint.Identity: CallOutcomes] = [:]
    private(set) var ejected: Set<Endpoint.Identity>?
    private(set) var toldCount = 0

    init(_ executor: VirtualExecutor) {
      self.virtual = executor
    }

    func takeOutcomes() -> [(endpoint: Endpoint.Identity, outcomes: CallOutcomes)] {
      XCTAssertTrue(self.virtual.isCurrent)
      defer { self.outcomes = [:] }
      return self.outcomes.map { ($0.key, $0.value) }
    }

    func setEjected(_ endpoints: Set<Endpoint.Identity>) {
      XCTAssertTrue(self.virtual.isCurrent)
      self.ejected = endpoints
      self.toldCount += 1
    }
  }

  private let home = VirtualExecutor()
  private let away = VirtualExecutor()
  private let endpoints = (1...6).map { Endpoint.Identity.key("\($0)") }
  /// At most one of six.
  private let settings = OutlierDetection(successRate: nil, failurePercentage: .init())

  private func runUntilIdle() {
    for _ in 0..<4 {
      self.home.runUntilIdle()
      self.away.runUntilIdle()
    }
  }

  private func advance(by duration: Duration) {
    self.home.advance(by: duration)
    self.runUntilIdle()
  }

  private func join(
    _ member: Member,
    _ outliers: SharedOutliers,
    _ endpoints: [Endpoint.Identity]? = nil,
    _ settings: OutlierDetection? = nil
  ) {
    member.virtual.sync {
      outliers.join(member, endpoints ?? self.endpoints, settings ?? self.settings)
    }
    self.runUntilIdle()
  }

  /// The first endpoint fails, the others do not.
  private func calls(_ count: Int) -> [Endpoint.Identity: CallOutcomes] {
    var outcomes: [Endpoint.Identity: CallOutcomes] = [:]
    for endpoint in self.endpoints { outcomes[endpoint] = CallOutcomes(successes: count) }
    outcomes[self.endpoints[0]] = CallOutcomes(failures: count)
    return outcomes
  }

  func testCallsOfAllMembersCountTogether() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let (a, b) = (Member(self.home), Member(self.away))
    self.join(a, outliers)
    self.join(b, outliers)
    XCTAssertEqual(a.ejected, [])
    XCTAssertEqual(b.ejected, [])
    // Fifty are needed, and neither has as many.
    a.outcomes = self.calls(25)
    b.outcomes = self.calls(25)
    self.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [self.endpoints[0]])
    XCTAssertEqual(b.ejected, [self.endpoints[0]])
    // One that comes later hears it, too.
    let c = Member(self.away)
    self.join(c, outliers)
    XCTAssertEqual(c.ejected, [self.endpoints[0]])
    self.advance(by: .seconds(40))
    for member in [a, b, c] { XCTAssertEqual(member.ejected, []) }
  }

  func testTooFewCalls() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let (a, b) = (Member(self.home), Member(self.away))
    self.join(a, outliers)
    self.join(b, outliers)
    a.outcomes = self.calls(25)
    self.advance(by: .seconds(10))
    // Counts are those of one interval.
    b.outcomes = self.calls(25)
    self.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [])
    XCTAssertEqual(a.toldCount, 1)
  }

  /// Members may have lists of their own, such as random subsets.
  func testMembersWithOtherEndpoints() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let (a, b) = (Member(self.home), Member(self.away))
    self.join(a, outliers, Array(self.endpoints[0..<3]))
    self.join(b, outliers, Array(self.endpoints[3...].reversed()))
    a.outcomes = self.calls(50).filter { self.endpoints[0..<3].contains($0.key) }
    b.outcomes = self.calls(50).filter { self.endpoints[3...].contains($0.key) }
    self.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [self.endpoints[0]])
    XCTAssertEqual(b.ejected, [self.endpoints[0]])
    // The endpoint leaves the list, and comes back as another.
    self.join(a, outliers, Array(self.endpoints[1..<3]))
    self.join(a, outliers, Array(self.endpoints[0..<3]))
    XCTAssertEqual(a.ejected, [])
    self.join(b, outliers)
    XCTAssertEqual(b.ejected, [])
  }

  func testMembersThatLeave() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let a = Member(self.home)
    var b: Member? = Member(self.away)
    if let b { self.join(b, outliers) }
    self.join(a, outliers)
    a.outcomes = self.calls(50)
    // Nobody has said that it has gone.
    b = nil
    self.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [self.endpoints[0]])
    self.home.sync { outliers.leave(a) }
    XCTAssertEqual(self.home.scheduled, [])
    let count = a.toldCount
    a.outcomes = self.calls(50)
    self.advance(by: .seconds(100))
    XCTAssertEqual(a.toldCount, count)
    XCTAssertEqual(a.outcomes.count, 6)
    // The next member begins without ejections.
    self.join(a, outliers)
    XCTAssertEqual(a.ejected, [])
  }

  /// A member whose executor is busy is not waited for longer than an interval, and its late counts are not lost.
  func testAMemberThatDoesNotAnswer() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let (a, b) = (Member(self.home), Member(self.away))
    self.join(a, outliers)
    self.join(b, outliers)
    a.outcomes = self.calls(50)
    b.outcomes = self.calls(1)
    let held = DispatchSemaphore(value: 0)
    self.away.execute { held.wait() }
    self.home.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [])
    self.home.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [self.endpoints[0]])
    held.signal()
    self.runUntilIdle()
    XCTAssertEqual(b.ejected, [self.endpoints[0]])
  }

  /// A change of the endpoints while a member is waited for does not cut that short.
  func testEndpointsThatChangeWhileCountsAreCollected() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let (a, b) = (Member(self.home), Member(self.away))
    self.join(a, outliers)
    self.join(b, outliers)
    a.outcomes = self.calls(25)
    b.outcomes = self.calls(25)
    let held = DispatchSemaphore(value: 0)
    self.away.execute { held.wait() }
    self.home.advance(by: .seconds(10))
    self.home.sync { outliers.join(a, self.endpoints + [.key("7")], self.settings) }
    self.home.advance(by: .seconds(1))
    held.signal()
    self.runUntilIdle()
    XCTAssertEqual(a.ejected, [self.endpoints[0]])
    XCTAssertEqual(b.ejected, [self.endpoints[0]])
  }

  /// Answers that come when all have left, and others have come, do not count.
  func testCountsOfAnEarlierJudgement() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let (a, b) = (Member(self.home), Member(self.away))
    self.join(b, outliers)
    b.outcomes = self.calls(100)
    let held = DispatchSemaphore(value: 0)
    self.away.execute { held.wait() }
    self.home.advance(by: .seconds(10))
    self.home.sync {
      outliers.leave(b)
      outliers.join(a, self.endpoints, self.settings)
    }
    held.signal()
    self.runUntilIdle()
    self.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [])
  }

  func testOtherSettings() {
    let outliers = SharedOutliers(on: self.home, seed: 1)
    let a = Member(self.home)
    self.join(a, outliers)
    a.outcomes = self.calls(50)
    self.advance(by: .seconds(10))
    XCTAssertEqual(a.ejected, [self.endpoints[0]])
    self.join(a, outliers, nil, OutlierDetection(successRate: nil, failurePercentage: nil))
    XCTAssertEqual(a.ejected, [])
    XCTAssertEqual(self.home.scheduled, [])
  }
}
