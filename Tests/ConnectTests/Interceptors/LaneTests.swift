import XCTest

@testable import Connect

final class LaneTests: XCTestCase {
  /// Passes values on at once, as long as it is not told to hold them; has room for two.
  private final class Stage: LaneStage<Int>, @unchecked Sendable {
    var isHolding = false
    var values: [Int] = []

    override var isEmpty: Bool { self.values.isEmpty }
    override var hasRoom: Bool { self.values.count < 2 }
    override func accept(_ element: Int, mayPass: Bool) -> Int? {
      self.values.append(element)
      return nil
    }
    override func takeReady() -> Int? {
      self.isHolding || self.values.isEmpty ? nil : self.values.removeFirst()
    }
  }

  private let stages = [Stage(), Stage()]
  private var sunk: [Int] = []
  private var sinkHasRoom = true
  private lazy var lane = Lane<Int>(
    stages: self.stages,
    sink: { [unowned self] in self.sunk.append($0) },
    sinkHasRoom: { [unowned self] in self.sinkHasRoom }
  )

  private func settle() {
    while self.lane.pump(isWantedBehind: true) {}
  }

  func testValuesPassAllStagesInOrder() {
    for value in 0..<2 { self.lane.accept(value) }
    XCTAssertFalse(self.lane.hasRoom())
    self.settle()
    XCTAssertEqual(self.sunk, [0, 1])
    XCTAssertTrue(self.lane.hasRoom())
    XCTAssertFalse(self.lane.pump(isWantedBehind: true))
  }

  func testWhoeverIsSlowHoldsBackTheSource() {
    self.sinkHasRoom = false
    var accepted = 0
    while self.lane.hasRoom() {
      self.lane.accept(accepted)
      accepted += 1
      self.settle()
    }
    XCTAssertEqual(accepted, 4)
    XCTAssertFalse(self.lane.wants(isWantedBehind: true))
    XCTAssertEqual(self.sunk, [])
    self.sinkHasRoom = true
    self.settle()
    XCTAssertEqual(self.sunk, [0, 1, 2, 3])
  }

  func testNothingIsWantedThatIsNotWantedBehind() {
    XCTAssertFalse(self.lane.wants(isWantedBehind: false))
    XCTAssertTrue(self.lane.wants(isWantedBehind: true))
    for value in 1...2 { self.lane.accept(value, at: 1) }
    XCTAssertFalse(self.lane.wants(isWantedBehind: true))
    XCTAssertTrue(self.lane.wants(at: 2, isWantedBehind: true))
  }

  func testBehindACutValuesAreThrownAway() {
    self.lane.cut(at: 1)
    self.lane.cut(at: 2)
    XCTAssertEqual(self.lane.cut, 1, "the cut furthest out counts")
    self.sinkHasRoom = false
    for value in 0..<10 {
      XCTAssertTrue(self.lane.hasRoom())
      self.lane.accept(value)
      self.settle()
    }
    XCTAssertEqual(self.stages[1].values, [])
    self.lane.mend()
    self.sinkHasRoom = true
    self.lane.accept(10)
    self.settle()
    XCTAssertEqual(self.sunk, [10])
  }
}
