import TestSupport
import XCTest

@testable import Connect

/// Random events against a model: parts leave each stage in the order in which they came, and none is lost or doubled.
final class PipelineOrderRandomTests: XCTestCase {
  /// What one stage was given in one direction, and what became of that.
  private final class Ledger {
    private(set) var given: [String] = []
    private var dropped: Set<String> = []

    func take(_ name: String) { self.given.append(name) }
    func drop(_ name: String) { self.dropped.insert(name) }
    func forget() { (self.given, self.dropped) = ([], []) }

    /// What has gone on, or will, in this order.
    var kept: [String] { self.given.filter { !self.dropped.contains($0) } }
  }

  /// A driver with hooks that wait, pass on and drop at random, and what each stage was given.
  private final class Model {
    let driver: OrderDriver
    var random: SeededGenerator
    private let requests: [Ledger]
    private let results: [Ledger]
    private var sent: [String] = []
    private var arrived: [String] = []
    private var isWireOver = false
    private var wireStart = 0

    init(_ seed: UInt64) {
      var random = SeededGenerator(quietly: seed)
      let messageStages = Int.random(in: 0...3, using: &random)
      let byteStages = Int.random(in: messageStages == 0 ? 1...3 : 0...3, using: &random)
      let driver = OrderDriver(
        messageStages,
        byteStages,
        maximumWaiting: Int.random(in: 0...4, using: &random)
      )
      driver.wireRoom = Int.random(in: 1...3, using: &random)
      driver.demand = Int.random(in: 0...3, using: &random)
      self.driver = driver
      self.random = random
      self.requests = (0..<driver.count).map { _ in Ledger() }
      self.results = (0..<driver.count).map { _ in Ledger() }
      driver.onRequest = { [unowned self] index, part in
        self.hook(self.requests[index], part.name, .send(part))
      }
      driver.onResult = { [unowned self] index, result in
        self.hook(self.results[index], result.name, .receive(result), mayDrop: result.isMessage)
      }
    }

    private func hook(
      _ ledger: Ledger,
      _ name: String,
      _ action: HookAction,
      mayDrop: Bool = true
    ) -> OrderDriver.Hook {
      ledger.take(name)
      switch Int.random(in: 0..<10, using: &self.random) {
      case 0...4: return .waits
      case 5 where mayDrop && name.hasPrefix("m"):
        ledger.drop(name)
        return .does(.drop)
      case 5...7: return .does(action)
      default: return .none
      }
    }

    // MARK: Events

    func step() {
      switch Int.random(in: 0..<10, using: &self.random) {
      case 0...2: self.send("m\(self.sent.count)")
      case 3...4: self.arrive("m\(self.arrived.count)")
      case 5...7: self.proceed()
      case 8: self.driver.wireRoom = max(self.driver.wireRoom, 0) + 1
      default: self.driver.demand = max(self.driver.demand, 0) + 1
      }
      self.driver.move()
    }

    func retry() {
      let index = Int.random(in: 0..<max(self.driver.order.codec, 1), using: &self.random)
      guard self.driver.order.codec > 0, !self.driver.states.hasPassedOut(at: index),
        let head = self.driver.order.retryHead(nil, at: index)
      else { return }
      _ = self.driver.order.waitToRetry(for: index)
      let epoch = self.driver.order.epoch
      for ledger in self.requests + self.results { ledger.forget() }
      self.arrived = []
      self.wireStart = self.driver.wire.count
      XCTAssertTrue(self.driver.order.retry(for: index, with: head, in: epoch))
      XCTAssertFalse(self.driver.order.retry(for: index, with: head, in: epoch - 1))
      self.driver.move()
    }

    private func send(_ name: String) {
      if self.driver.send(.text(name)) { self.sent.append(name) }
    }

    private func arrive(_ name: String) {
      guard self.driver.wantsResult else { return }
      self.arrived.append(name)
      self.driver.receive(.text(name))
    }

    private func proceed() {
      guard let visit = self.driver.visits.randomElement(using: &self.random) else { return }
      let drops = visit.part.hasPrefix("m") && Int.random(in: 0..<4, using: &self.random) == 0
      let action: HookAction
      if visit.isRequest {
        action = drops ? .drop : .send(visit.part.hasPrefix("m") ? .text(visit.part) : .head(visit.part))
      } else {
        action = drops ? .drop : .receive(.text(visit.part))
      }
      let ledger = (visit.isRequest ? self.requests : self.results)[visit.index]
      // Visits of an attempt that was given up are among them.
      guard self.driver.proceed(visit, action) else { return self.driver.forget(visit) }
      if drops { ledger.drop(visit.part) }
      XCTAssertFalse(self.driver.proceed(visit, action), "twice")
    }

    // MARK: Checks

    /// What a stage was given is the beginning of what has gone on from the one before.
    func check(_ what: String, isDone: Bool = false) {
      let stages = (0..<self.driver.count).filter { $0 != self.driver.order.codec }
      var before = ["first"] + self.sent
      for index in stages {
        self.compare(self.requests[index].given, before, isDone, "\(what): request at \(index)")
        before = self.requests[index].kept
      }
      self.compare(Array(self.driver.wire[self.wireStart...]), before, isDone, "\(what): wire")
      before = self.arrived
      for index in stages.reversed() {
        self.compare(self.results[index].given, before, isDone, "\(what): result at \(index)")
        before = self.results[index].kept
      }
      self.compare(self.driver.delivered, before, isDone, "\(what): caller")
    }

    private func compare(_ actual: [String], _ expected: [String], _ isDone: Bool, _ what: String) {
      if isDone {
        XCTAssertEqual(actual, expected, what)
      } else {
        // Hooks that have not proceeded may still drop what they have, so what follows is not certain.
        XCTAssertTrue(
          expected.starts(with: actual) || Self.isSubsequence(actual, of: expected),
          "\(what): \(actual)"
        )
      }
    }

    private static func isSubsequence(_ part: [String], of whole: [String]) -> Bool {
      var rest = whole[...]
      for element in part {
        guard let index = rest.firstIndex(of: element) else { return false }
        rest = rest[(index + 1)...]
      }
      return true
    }

    /// Lets everything go on, as far as it goes.
    func drain() {
      self.driver.wireRoom = .max
      self.driver.demand = .max
      self.driver.move()
      for _ in 0..<10_000 where !self.driver.visits.isEmpty { self.proceed() }
      self.driver.move()
    }
  }

  private func run(_ seed: UInt64, retries: Bool) {
    let model = Model(seed)
    model.driver.start()
    for step in 0..<60 {
      model.step()
      model.check("seed \(seed), step \(step)")
      if retries, step % 20 == 19 { model.retry() }
    }
    model.drain()
    model.check("seed \(seed), end", isDone: true)
    XCTAssertTrue(model.driver.visits.isEmpty, "seed \(seed)")
    XCTAssertFalse(model.driver.order.mayKeep, "seed \(seed)")
  }

  func testNothingIsLostDoubledOrOutOfOrder() {
    var seeds = SeededGenerator()
    for _ in 0..<500 { self.run(seeds.next(), retries: false) }
  }

  func testNorWithRetries() {
    var seeds = SeededGenerator()
    for _ in 0..<500 { self.run(seeds.next(), retries: true) }
  }
}
