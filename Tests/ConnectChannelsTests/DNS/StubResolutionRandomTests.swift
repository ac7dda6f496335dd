import XCTest

@testable import ConnectChannels

/// Random servers and networks against invariants: each lookup ends exactly once, within a bound that depends
/// on attempts, servers and names, and no query is left open. A failure prints the seed that repeats it.
final class StubResolutionRandomTests: XCTestCase {
  func testRandomServers() {
    var outcomes: [String: Int] = [:]
    for round in 0..<3_000 {
      let outcome = self.run(seed: UInt64(round))
      outcomes[outcome, default: 0] += 1
    }
    for outcome in ["answer", "noSuchName", "noRecords", "serverFailure", "unreachable", "tooManyAliases"] {
      XCTAssertGreaterThan(outcomes[outcome, default: 0], 5, "\(outcome) is hardly tested: \(outcomes)")
    }
  }

  private func run(seed: UInt64) -> String {
    var random = SeededRandom(seed: seed)
    let servers = Int.random(in: 1...3, using: &random)
    let attempts = Int.random(in: 1...3, using: &random)
    let search = ["x", "y", "z"].prefix(Int.random(in: 0...3, using: &random))
    let question: StubResolution.Question =
      [.addresses(of: "n"), .texts(of: "n"), .services(of: "n")].randomElement(using: &random)!
    var configuration = StubHarness.configuration(servers: servers, search: Array(search), attempts: attempts)
    configuration.rotatesServers = Bool.random(using: &random)
    configuration.usesTCP = Int.random(in: 0..<8, using: &random) == 0
    var harness = StubHarness(question, configuration, seed: seed)
    // Three queries for each turn; two record types; aliases; targets of a service.
    let names = search.count + 1 + 4
    let bound = 3 * servers * attempts * 2 * names * (1 + DNSExchange.maximumAliases)
    let mood = Int.random(in: 0..<6, using: &random)
    var old: [StubResolution.Query] = []
    // Each event ends a query's wait, or is one of the few that change nothing.
    for _ in 0..<bound * 4 where harness.results.isEmpty {
      guard let query = harness.open.randomElement(using: &random) else {
        XCTFail("a lookup without queries goes on; seed \(seed)")
        break
      }
      old.append(query)
      self.act(on: query, of: &harness, mood: mood, using: &random)
      if let late = old.randomElement(using: &random), Int.random(in: 0..<10, using: &random) == 0 {
        self.act(on: late, of: &harness, mood: mood, using: &random)
      }
    }
    // What is still open times out: the driver's timers always fire.
    while harness.results.isEmpty, let query = harness.open.last { harness.timeOut(query) }
    XCTAssertEqual(harness.results.count, 1, "seed \(seed)")
    XCTAssertTrue(harness.open.isEmpty, "seed \(seed)")
    XCTAssertTrue(harness.resolution.isFinished, "seed \(seed)")
    XCTAssertLessThanOrEqual(harness.sent.count, bound, "seed \(seed)")
    for query in harness.sent { self.act(on: query, of: &harness, mood: mood, using: &random) }
    XCTAssertEqual(harness.results.count, 1, "seed \(seed)")
    return harness.error.map { "\($0.reason)" } ?? "answer"
  }

  private func act(
    on query: StubResolution.Query,
    of harness: inout StubHarness,
    mood: Int,
    using random: inout SeededRandom
  ) {
    let question = StubHarness.question(query)
    let kind =
      mood == 0
      ? 0 : mood == 1 ? Int.random(in: 7..<9, using: &random) : Int.random(in: 0..<12, using: &random)
    switch kind {
    case 0:
      harness.timeOut(query)
    case 1:
      harness.fail(query)
    case 2:
      harness.receive(random.mutated(ResponseBuilder(to: query.bytes).bytes), for: query)
    case 3:
      harness.answer(query, flags: 0x8380)
    case 4:
      harness.answer(query, code: [.serverFailure, .refused, .formatError].randomElement(using: &random)!)
    case 5:
      harness.answer(query, code: .noSuchName) { $0.authority(.root) }
    case 6:
      harness.answer(query) { $0.authority(.root) }
    case _ where kind == 7 || (kind == 8 && mood == 1):
      let target = dns("alias\(Int.random(in: 0..<1_000, using: &random))")
      harness.answer(query) { $0.alias(question.name, to: target) }
    case 8 where mood > 3:
      harness.answer(query, code: .noSuchName)
    default:
      let targets = (0..<Int.random(in: 1...4, using: &random)).map { dns("target\($0)") }
      harness.answer(query) {
        switch question.type {
        case .a: $0.address(question.name, "192.0.2.1")
        case .aaaa: $0.address(question.name, "2001:db8::1")
        case .srv: for target in targets { $0.service(question.name, port: 1, target: target) }
        default: $0.text(question.name, ["x"])
        }
      }
    }
  }
}
