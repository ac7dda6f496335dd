import Connect
import ConnectChannels
import XCTest

@testable import ConnectTesting

/// Schedules, choices and the search, without interceptors.
final class ScheduleSearchTests: XCTestCase {
  // MARK: Text

  func testTextOfSchedules() throws {
    let text = "unary 3:2 17:1"
    let schedule = try Schedule(parsing: text, methods: [.serverStream, .unary])
    XCTAssertEqual(schedule.method, .unary)
    XCTAssertEqual(schedule.deviations, [.init(choice: 3, option: 2), .init(choice: 17, option: 1)])
    XCTAssertEqual(schedule.description, text)
    XCTAssertEqual(try Schedule(parsing: "unary", methods: [.unary]).deviations, [])
    XCTAssertEqual(try Schedule(parsing: "\n  unary 3:2\r\n\t17:1 \n", methods: [.unary]), schedule)
  }

  func testSchedulesOfOtherMethodsSayWhatIsMissing() {
    XCTAssertThrowsError(try Schedule(parsing: "serverStream 3:2", methods: [.unary])) {
      XCTAssertTrue("\($0)".contains("needs .methods([.serverStream])"), "\($0)")
    }
    XCTAssertThrowsError(try Schedule(parsing: "3:2", methods: [.unary, .clientStream])) {
      XCTAssertTrue(
        "\($0)".contains("has to begin with a method of the explorer: unary, clientStream"),
        "\($0)"
      )
    }
  }

  func testWrongTextsAreRefused() {
    for text in [
      "", "3:2", "serverStream", "unary 3", "unary 3:", "unary 3:0", "unary 3:-1", "unary -3:1",
      "unary 3:1 3:2",
      "unary 5:1 3:2", "unary 3:1:1", "unary a:b", "unary 99999999999999999999:1",
    ] {
      XCTAssertThrowsError(try Schedule(parsing: text, methods: [.unary]), text) {
        XCTAssertTrue("\($0)".contains("is not a schedule"), "\($0)")
      }
    }
  }

  // MARK: Choices

  func testScheduledChoices() {
    var chooser = Chooser(Schedule(method: .unary, deviations: [.init(choice: 1, option: 2)]))
    XCTAssertEqual(chooser.choose(.answer, among: 3), 0)
    XCTAssertEqual(chooser.choose(.answer, among: 1), 0, "no choice")
    XCTAssertEqual(chooser.choose(.answer, among: 3), 2)
    XCTAssertEqual(chooser.choose(.answer, among: 3), 0)
    XCTAssertEqual(chooser.points.map(\.option), [0, 2, 0])
    XCTAssertEqual(chooser.schedule(Schedule(method: .unary)).description, "unary 1:2")
  }

  func testOptionsThatAreNotThereAreBoring() {
    var chooser = Chooser(Schedule(method: .unary, deviations: [.init(choice: 0, option: 7)]))
    XCTAssertEqual(chooser.choose(.answer, among: 3), 0)
    XCTAssertEqual(chooser.schedule(Schedule(method: .unary)).description, "unary")
  }

  func testRandomChoicesAreTheSameAgain() {
    func choices(_ seed: UInt64) -> [Int] {
      var chooser = Chooser(random: SeededRandom(seed: seed), wildness: 1)
      return (0..<200).map { _ in chooser.choose([.order, .order, .cancellation, .begin]) }
    }
    XCTAssertEqual(choices(1), choices(1))
    XCTAssertNotEqual(choices(1), choices(2))
    XCTAssertEqual(Set(choices(1) + choices(2)), [0, 1, 2, 3, 4])
  }

  func testFrozenChoicesAreBoringAndNotRecorded() {
    var chooser = Chooser(random: SeededRandom(seed: 1), wildness: 100)
    chooser.freeze()
    XCTAssertEqual(chooser.choose(.begin, among: 5), 0)
    XCTAssertTrue(chooser.points.isEmpty)
  }

  // MARK: Search

  /// The first is the boring one; then every single deviation comes, each once.
  func testSearchTriesEachSingleDeviation() {
    var plan = SearchPlan(.unary, SeededRandom(seed: 1))
    var seen: [Schedule] = []
    for _ in 0..<200 {
      var chooser = plan.next()
      for _ in 0..<5 { _ = chooser.choose([.order, .cancellation]) }
      for _ in 0..<5 { _ = chooser.choose(.answer, among: 4) }
      let schedule = chooser.schedule(Schedule(method: .unary))
      plan.didRun(schedule, chooser.points, isNew: !seen.contains(schedule))
      seen.append(schedule)
    }
    XCTAssertEqual(seen.first?.deviations, [])
    let singles = Set(seen.filter { $0.deviations.count == 1 })
    XCTAssertEqual(singles.count, 5 * 2 + 5 * 3)
    XCTAssertGreaterThan(Set(seen.filter { $0.deviations.count == 2 }).count, 20)
    XCTAssertGreaterThan(Set(seen).count, 120)
  }

  /// However many kinds there are, each has its turn.
  func testKindsTakeTurns() {
    for count in 1...ChoiceKind.allCases.count {
      let kinds = ChoiceKind.allCases.filter { $0 != .begin }.prefix(count)
      var plan = SearchPlan(.unary, SeededRandom(seed: 1))
      var seen: Set<ChoiceKind> = []
      for _ in 0..<(3 * kinds.count) {
        var chooser = plan.next()
        for _ in 0..<100 { for kind in kinds { _ = chooser.choose(kind, among: 2) } }
        let schedule = chooser.schedule(Schedule(method: .unary))
        if schedule.deviations.count == 1 {
          seen.formUnion(schedule.deviations.flatMap { chooser.points[$0.choice].kinds })
        }
        plan.didRun(schedule, chooser.points, isNew: false)
      }
      XCTAssertEqual(seen, Set(kinds))
    }
  }

  /// Of several calls, each may begin after the end of the one before. This is a start for single deviations, too.
  func testSearchTriesEachSingleDeviationOfCallsInTurns() {
    var plan = SearchPlan(.unary, SeededRandom(seed: 1))
    let turns = [1, 3].map { Schedule.Deviation(choice: $0, option: RunCallers.optionOfTurns) }
    var seen: [Schedule] = []
    for _ in 0..<120 {
      var chooser = plan.next()
      for _ in 0..<2 {
        _ = chooser.choose([.timeout])
        _ = chooser.choose(.begin, among: RunCallers.optionOfTurns + 1)
      }
      for _ in 0..<20 { _ = chooser.choose([.order, .cancellation]) }
      let schedule = chooser.schedule(Schedule(method: .unary))
      plan.didRun(schedule, chooser.points, isNew: !seen.contains(schedule))
      seen.append(schedule)
    }
    XCTAssertEqual(seen[1].deviations, turns)
    let inTurns = Set(
      seen.map(\.deviations).filter { deviations in
        deviations.count == 3 && turns.allSatisfy { deviations.contains($0) }
      }
    )
    // Timeouts, and each cancellation.
    for choice in [0, 2] {
      let deviation = Schedule.Deviation(choice: choice, option: 1)
      XCTAssertTrue(inTurns.contains((turns + [deviation]).sorted { $0.choice < $1.choice }))
    }
    for choice in 4..<24 {
      XCTAssertTrue(inTurns.contains(turns + [Schedule.Deviation(choice: choice, option: 2)]), "\(choice)")
    }
  }

  /// Of schedules with very many choices only some are kept.
  func testSearchKeepsFewChoicesOfLongSchedules() {
    var plan = SearchPlan(.unary, SeededRandom(seed: 1))
    var children = 0
    for _ in 0..<60 {
      var chooser = plan.next()
      for _ in 0..<20_000 { _ = chooser.choose([.order, .cancellation]) }
      let schedule = chooser.schedule(Schedule(method: .unary))
      if schedule.deviations.count == 2 { children += 1 }
      plan.didRun(schedule, chooser.points, isNew: true)
    }
    XCTAssertGreaterThan(children, 5)
    XCTAssertLessThanOrEqual(plan.parents.reduce(0) { $0 + $1.kinds.count }, 60 * 500)
    XCTAssertLessThanOrEqual(plan.tried.count, 2 * 2_000 + 60)
  }

  // MARK: Shrinking

  /// Of ten deviations, one that needs its choice, and one that needs at least option 2.
  func testShrinking() {
    let schedule = Schedule(method: .unary, deviations: (0..<10).map { .init(choice: $0, option: 3) })
    var shrinker = Shrinker()
    var tries = 0
    let shrunk = shrinker.shrink(schedule) { tried in
      tries += 1
      let breaks =
        tried.deviations.contains { $0.choice == 4 }
        && tried.deviations.contains { $0.choice == 7 && $0.option >= 2 }
      return breaks ? tried : nil
    }
    XCTAssertEqual(shrunk.description, "unary 4:1 7:2")
    XCTAssertLessThan(tries, 40)
  }

  /// A schedule that breaks the rule only as it is stays as it is, and the search ends.
  func testShrinkingEnds() {
    let schedule = Schedule(method: .unary, deviations: (0..<300).map { .init(choice: $0, option: 9) })
    var shrinker = Shrinker()
    var tries = 0
    let shrunk = shrinker.shrink(schedule) { tried in
      tries += 1
      return tried == schedule ? tried : nil
    }
    XCTAssertEqual(shrunk, schedule)
    XCTAssertLessThanOrEqual(tries, 400)
  }
}
