import XCTest

@testable import ConnectSimulation

final class StormCheckTests: XCTestCase {
  private static let policy = #"""
    "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"] }
    """#

  private static func call(_ service: String, _ rules: String = policy, _ rest: String = "") -> String {
    #"{ "service": "\#(service)", "method": "/t.\#(service)/Do", "config": { "methodConfig": [{ "name": [{}], \#(rules) }] \#(rest) } }"#
  }

  private static func chain(_ rest: String = "") -> String {
    #"""
    { "services": [
      { "name": "stock" },
      { "name": "client", "calls": [\#(self.call("front", policy, rest))] },
      { "name": "front", "calls": [\#(self.call("orders", policy, rest))] },
      { "name": "orders", "calls": [\#(self.call("stock", policy, rest))] }
    ] }
    """#
  }

  func testThreeAttemptsInARow() async throws {
    let check = StormCheck(try ServiceMap(json: Self.chain()))
    XCTAssertEqual(check.worst.path, ["client", "front", "orders", "stock"])
    XCTAssertEqual(check.worst.amplification, 27, accuracy: 1e-9)
    let result = await check.run()
    XCTAssertEqual(result.violations, [])
    XCTAssertEqual(result.simulated ?? 0, 27, accuracy: 0.5)
    XCTAssertTrue(result.isStorm)
    XCTAssertEqual(result.budgets.map(\.from), ["client", "front", "orders"])
    XCTAssertLessThanOrEqual(result.simulatedWithProposal ?? 99, StormCheck.limit)
    let again = await check.run()
    XCTAssertEqual(again, result)
  }

  /// With the proposed budgets in the file nothing is proposed any more.
  func testBudgets() async throws {
    let proposed = await StormCheck(try ServiceMap(json: Self.chain())).run().budgets
    let budget = try XCTUnwrap(proposed.first)
    let text =
      #", "retryThrottling": { "maxTokens": \#(budget.maxTokens), "tokenRatio": \#(budget.tokenRatio) }"#
    let result = await StormCheck(try ServiceMap(json: Self.chain(text))).run()
    XCTAssertEqual(result.amplification, 27, accuracy: 1e-9)
    XCTAssertLessThan(result.amplificationWithBudgets, StormCheck.limit)
    XCTAssertLessThanOrEqual(result.simulated ?? 99, StormCheck.limit)
    XCTAssertFalse(result.isStorm)
    XCTAssertNil(result.simulatedWithProposal)
  }

  /// Nine callers with five attempts each make two million requests of a call: that is not tried.
  func testTooManyRequests() async throws {
    let policy = Self.policy.replacing("3", with: "5")
    let services = (0..<9).map { #"{ "name": "s\#($0)", "calls": [\#(Self.call("s\($0 + 1)", policy))] }"# }
    let map = try ServiceMap(
      json: #"{ "services": [\#(services.joined(separator: ",")), { "name": "s9" }] }"#
    )
    let result = await StormCheck(map).run()
    XCTAssertEqual(result.amplification, 1_953_125, accuracy: 1)
    XCTAssertNil(result.simulated)
    XCTAssertTrue(result.isStorm)
    XCTAssertLessThanOrEqual(result.simulatedWithProposal ?? 99, StormCheck.limit)
  }

  /// Two ways to the same service add up, and a fan-out is no storm.
  func testWaysThatMeet() throws {
    let map = try ServiceMap(
      json: #"""
        { "services": [
          { "name": "client", "calls": [\#(Self.call("a")), { "service": "b", "method": "/t.b/Do", "times": 3 }] },
          { "name": "a", "calls": [\#(Self.call("stock"))] },
          { "name": "b", "calls": [{ "service": "stock", "method": "/t.stock/Do" }] },
          { "name": "stock" }
        ] }
        """#
    )
    // Of four calls, one becomes nine: 9 + 3 in place of 1 + 3.
    let amplifications = StormCheck(map).worst
    XCTAssertEqual(amplifications.amplification, 3, accuracy: 1e-9)
    XCTAssertEqual(StormCheck(map).usualCalls(of: "stock"), 4)
  }

  func testDeadlines() throws {
    func deadlines(_ first: String, _ second: String, _ latency: String = "0.001s") throws -> [String] {
      let json = #"""
        { "services": [
          { "name": "client", "calls": [\#(Self.call("front", first))] },
          { "name": "front", "calls": [\#(Self.call("stock", second))] },
          { "name": "stock", "latency": "\#(latency)" } ] }
        """#
      return StormCheck(try ServiceMap(json: json)).deadlines
    }
    XCTAssertEqual(try deadlines(#""timeout": "2s""#, #""timeout": "1s""#), [])
    XCTAssertEqual(
      try deadlines(#""timeout": "1s""#, #""timeout": "3s""#, "2s"),
      ["client gives front 1 s, which takes 2.00 s when all is well: it is never met"]
    )
    XCTAssertEqual(
      try deadlines(#""timeout": "1s""#, #""timeout": "3s", \#(Self.policy)"#, "0.5s"),
      [
        "client gives front 1 s, which may take 1.53 s for its own calls: it works on for a caller that has gone"
      ]
    )
    let slow = Self.policy.replacing("0.01s", with: "5s").replacing("0.1s", with: "5s")
    XCTAssertEqual(
      try deadlines(#""timeout": "1s", \#(slow)"#, #""timeout": "0.5s""#),
      ["client gives front 1 s, and waits up to 10 s between 3 attempts: the last ones never begin"]
    )
  }

  /// Two calls each of 200 services are too many; retries of twelve are only calculated.
  func testMapsThatAreTooLarge() {
    func map(_ count: Int, _ calls: [Int]) -> String {
      let services = (0..<count).map { number in
        let called = calls.map { number + $0 }.filter { $0 < count }.map { Self.call("s\($0)") }
        return #"{ "name": "s\#(number)", "calls": [\#(called.joined(separator: ","))] }"#
      }
      return #"{ "services": [\#(services.joined(separator: ","))] }"#
    }
    XCTAssertThrowsError(try ServiceMap(json: map(200, [1, 2]))) { error in
      XCTAssertTrue("\(error)".contains("of which 100,000 can be simulated"), "\(error)")
    }
    XCTAssertNoThrow(try ServiceMap(json: map(12, [1])))
  }

  func testMapsThatAreWrong() {
    for (json, problem) in [
      ("{", "no JSON, line 1"), ("{}", "\"services\" is missing"),
      (#"{"services":[],"lod":1}"#, "\"lod\" is not known"),
      (#"{"services":[{"name":"a"}]}"#, "no service calls another one"),
      (#"{"services":[{"name":"a"},{"name":"a","calls":[]}]}"#, "\"a\" is there twice"),
      (#"{"services":[{"name":"a b"}]}"#, "no name of letters"),
      (
        #"{"services":[{"name":"a","calls":[{"service":"b","method":"/x/y"}]}]}"#,
        "a calls \"b\", which is not there"
      ),
      (#"{"services":[{"name":"a","calls":[{"service":"a","method":"/x/y"}]}]}"#, "in a circle: a"),
      (#"{"services":[{"name":"a","calls":[{"service":"a","method":"y"}]}]}"#, "is no method"),
      (
        #"{"services":[{"name":"a","calls":[{"service":"a","method":"/x/y","config":{"methodConfig":[{"timeout":1}]}}]}]}"#,
        "services[0].calls[0].config.methodConfig[0].timeout"
      ),
    ] {
      XCTAssertThrowsError(try ServiceMap(json: json), json) { error in
        XCTAssertTrue("\(error)".contains(problem), "\(error)")
      }
    }
  }
}
