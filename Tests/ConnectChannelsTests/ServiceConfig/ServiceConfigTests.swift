import Connect
import XCTest

@testable import ConnectChannels

final class ServiceConfigTests: XCTestCase {
  static let everything = """
    {
      "loadBalancingConfig": [
        { "not_known": { "x": 1 } },
        { "outlier_detection_experimental": {
          "interval": "5s", "baseEjectionTime": "400s", "maxEjectionPercent": 50,
          "successRateEjection": { "stdevFactor": 1000, "minimumHosts": "3" },
          "failurePercentageEjection": { "threshold": 50, "enforcementPercentage": 10, "requestVolume": 7 },
          "childPolicy": [{ "random_subsetting_experimental": {
            "subsetSize": 20, "childPolicy": [{ "ring_hash_experimental": {
              "minRingSize": "2048", "maxRingSize": 8192, "requestHashHeader": "X-User" } }]
          } }]
        } }
      ],
      "loadBalancingPolicy": "ignored beside the list",
      "methodConfig": [
        { "name": [{}], "timeout": "10s", "waitForReady": true },
        { "name": [{ "service": "s", "method": null }], "maxRequestMessageBytes": 0, "maxResponseMessageBytes": "9" },
        { "name": [{ "service": "s", "method": "a" }, { "service": "s", "method": "b" }], "retryPolicy": {
            "maxAttempts": 9, "initialBackoff": ".1s", "maxBackoff": "1s", "backoffMultiplier": 2,
            "retryableStatusCodes": ["unavailable", 4, "CANCELLED"] } },
        { "name": [{ "service": "t" }], "hedgingPolicy": {
            "maxAttempts": 3, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["INTERNAL"] } },
        { "timeout": "1s" }
      ],
      "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.5466 },
      "healthCheckConfig": { "serviceName": "" },
      "connectionScaling": { "maxConnectionsPerSubchannel": 99 },
      "unknown": [1, 2]
    }
    """

  func testEverything() throws {
    let expected = ServiceConfig(
      methods: [
        MethodConfig(names: [.init()], timeout: .seconds(10), waitsForReady: true),
        MethodConfig(
          names: [.init(service: "s")],
          maximumRequestMessageSize: 0,
          maximumResponseMessageSize: 9
        ),
        MethodConfig(
          names: [.init(service: "s", method: "a"), .init(service: "s", method: "b")],
          attempts: .retry(
            .init(
              maximumAttempts: 5,
              initialBackoff: .milliseconds(100),
              maximumBackoff: .seconds(1),
              backoffMultiplier: 2,
              retryableCodes: [.unavailable, .deadlineExceeded, .canceled]
            )
          )
        ),
        MethodConfig(
          names: [.init(service: "t")],
          attempts: .hedging(
            .init(maximumAttempts: 3, hedgingDelay: .milliseconds(500), nonFatalCodes: [.internalError])
          )
        ),
        MethodConfig(names: [], timeout: .seconds(1)),
      ],
      loadBalancing: .outlierDetection(
        OutlierDetection(
          interval: .seconds(5),
          baseEjectionTime: .seconds(400),
          maximumEjectionTime: .seconds(400),
          maximumEjectionPercent: 50,
          successRate: .init(deviations: 1, minimumHosts: 3),
          failurePercentage: .init(threshold: 50, enforcement: 10, minimumCalls: 7)
        ),
        of: .randomSubset(
          of: .ringHash(.init(key: .header("x-user"), minimumRingSize: 2_048, maximumRingSize: 8_192)),
          size: 20
        )
      ),
      healthCheckServiceName: "",
      retryThrottling: .init(maximumTokens: 10, tokenRatio: 0.546),
      maximumConnectionsPerSubchannel: 10
    )
    XCTAssertEqual(try ServiceConfig(json: Self.everything), expected)
    XCTAssertEqual(try ServiceConfig(json: "{}"), ServiceConfig())
    XCTAssertEqual(try ServiceConfig(json: #"{"methodConfig":null}"#), ServiceConfig())
  }

  /// A copy of the config in the article "Using a service config".
  func testArticleExample() throws {
    let config = try ServiceConfig(
      json: #"""
        { "methodConfig": [
            { "name": [{ "service": "pkg.Service" }], "timeout": "2s", "waitForReady": true,
              "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"] } }
          ],
          "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 } }
        """#
    )
    XCTAssertEqual(config.methods.map(\.timeout), [.seconds(2)])
    XCTAssertEqual(config.retryThrottling, .init(maximumTokens: 10, tokenRatio: 0.1))
  }

  func testPrecedenceOfMethods() throws {
    let table = MethodTable(try ServiceConfig(json: Self.everything).methods) { $0 }
    XCTAssertNotNil(table.rules(service: "s", method: "a")?.attempts)
    XCTAssertEqual(table.rules(service: "s", method: "c")?.maximumRequestMessageSize, 0)
    XCTAssertNil(table.rules(service: "s", method: "c")?.timeout, "rules are not merged")
    XCTAssertEqual(table.rules(service: "other", method: "a")?.timeout, .seconds(10))
    for methods in [[], [MethodConfig(names: [.init(service: "s")])]] {
      let few = MethodTable(methods) { $0 }
      XCTAssertNil(few.rules(service: "x", method: "a"))
    }
  }

  func testPolicies() throws {
    let cases: [(json: String, policy: BalancingPolicy)] = [
      (#"{"pick_first":{}}"#, .pickFirst),
      (#"{"pick_first":{"shuffleAddressList":true}}"#, .pickFirst(shuffles: true)),
      (#"{"round_robin":{"unknown":1}}"#, .roundRobin),
      (#"{"xds":{}},{"round_robin":{}},{"pick_first":7}"#, .roundRobin),
      (#"{"least_request_experimental":{}}"#, .leastRequest(choices: 2)),
      (#"{"least_request_experimental":{"choiceCount":3}}"#, .leastRequest(choices: 3)),
      (#"{"least_request_experimental":{"choiceCount":11}}"#, .leastRequest(choices: 10)),
      (#"{"weighted_round_robin":{}}"#, .weightedRoundRobin(.defaults)),
      (
        #"{"weighted_round_robin":{"enableOobLoadReport":true,"oobReportingPeriod":"1s","blackoutPeriod":"0s","#
          + #""weightExpirationPeriod":"2s","weightUpdatePeriod":"0.01s","errorUtilizationPenalty":0.5}}"#,
        .weightedRoundRobin(
          .init(
            outOfBandPeriod: .seconds(1),
            blackoutPeriod: .zero,
            expirationPeriod: .seconds(2),
            updatePeriod: .milliseconds(100),
            errorPenalty: 0.5
          )
        )
      ),
      (
        #"{"weighted_round_robin":{"enableOobLoadReport":true}}"#,
        .weightedRoundRobin(.init(outOfBandPeriod: .seconds(10)))
      ),
      (#"{"weighted_round_robin":{"oobReportingPeriod":"1s"}}"#, .weightedRoundRobin()),
      (#"{"ring_hash_experimental":{}}"#, .ringHash()),
      (
        #"{"outlier_detection_experimental":{"childPolicy":[{"round_robin":{}}],"maxEjectionTime":"1s"}}"#,
        .outlierDetection(
          OutlierDetection(maximumEjectionTime: .seconds(1), successRate: nil, failurePercentage: nil),
          of: .roundRobin
        )
      ),
    ]
    for (json, policy) in cases {
      XCTAssertEqual(
        try ServiceConfig(json: "{\"loadBalancingConfig\":[\(json)]}").loadBalancing,
        policy,
        json
      )
    }
    XCTAssertEqual(
      try ServiceConfig(json: #"{"loadBalancingPolicy":"ROUND_ROBIN"}"#).loadBalancing,
      .roundRobin
    )
    XCTAssertEqual(
      try ServiceConfig(json: #"{"loadBalancingPolicy":"pick_first"}"#).loadBalancing,
      .pickFirst
    )
  }

  private static let retry =
    #""maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":1,"#
    + #""retryableStatusCodes":["UNAVAILABLE"]"#

  func testErrorsNameThePlace() {
    func retry(_ old: String, _ new: String) -> String {
      #"{"methodConfig":[{"name":[{}],"retryPolicy":{"# + Self.retry.replacingOccurrences(of: old, with: new)
        + "}}]}"
    }
    func policy(_ json: String) -> String { "{\"loadBalancingConfig\":[\(json)]}" }
    let inRetry = "methodConfig[0].retryPolicy"
    let cases: [(json: String, path: String, problem: String)] = [
      ("", "", "no JSON, line 1, column 1"), ("[]", "", "expected an object, found a list"),
      (#"{"methodConfig":{}}"#, "methodConfig", "expected a list, found an object"),
      (#"{"methodConfig":[7]}"#, "methodConfig[0]", "expected an object"),
      (#"{"methodConfig":[{"timeout":1}]}"#, "methodConfig[0].timeout", "expected a string"),
      (#"{"methodConfig":[{"timeout":"1"}]}"#, "methodConfig[0].timeout", "such as \"1.5s\""),
      (#"{"methodConfig":[{"timeout":"-1s"}]}"#, "methodConfig[0].timeout", "at least 0s"),
      (#"{"methodConfig":[{"waitForReady":"true"}]}"#, "methodConfig[0].waitForReady", "true or false"),
      (
        #"{"methodConfig":[{"maxRequestMessageBytes":-1}]}"#, "methodConfig[0].maxRequestMessageBytes",
        "at least 0"
      ),
      (
        #"{"methodConfig":[{"maxRequestMessageBytes":1.5}]}"#, "methodConfig[0].maxRequestMessageBytes",
        "integer"
      ),
      (
        #"{"methodConfig":[{"maxRequestMessageBytes":4294967296}]}"#,
        "methodConfig[0].maxRequestMessageBytes", "at most"
      ),
      (
        #"{"methodConfig":[{"maxRequestMessageBytes":1e99}]}"#, "methodConfig[0].maxRequestMessageBytes",
        "integer"
      ),
      (#"{"methodConfig":[{"name":[{"method":"a"}]}]}"#, "methodConfig[0].name[0]", "no service"),
      (#"{"methodConfig":[{"name":[{}]},{"name":[{"service":""}]}]}"#, "methodConfig[1].name[0]", "twice"),
      (
        #"{"methodConfig":[{"name":[{"service":"s"},{"service":"s"}]}]}"#, "methodConfig[0].name[1]",
        "s/* is there"
      ),
      (retry(#""maxAttempts":2,"#, ""), inRetry, "\"maxAttempts\" is missing"),
      (retry(#"s":2"#, #"s":1"#), "\(inRetry).maxAttempts", "at least 2"),
      (
        retry(#""initialBackoff":"1s""#, #""initialBackoff":"0s""#), "\(inRetry).initialBackoff",
        "greater than 0s"
      ),
      (retry(#""initialBackoff":"1s","#, ""), inRetry, "\"initialBackoff\" is missing"),
      (retry(#""maxBackoff":"1s""#, #""maxBackoff":"0s""#), "\(inRetry).maxBackoff", "greater than 0s"),
      (retry(#""maxBackoff":"1s","#, ""), inRetry, "\"maxBackoff\" is missing"),
      (retry(#"r":1"#, #"r":0"#), "\(inRetry).backoffMultiplier", "greater than 0"),
      (retry(#""backoffMultiplier":1,"#, ""), inRetry, "\"backoffMultiplier\" is missing"),
      (
        retry(#","retryableStatusCodes":["UNAVAILABLE"]"#, ""), inRetry, "\"retryableStatusCodes\" is missing"
      ),
      (retry(#"["UNAVAILABLE"]"#, "[]"), "\(inRetry).retryableStatusCodes", "at least one code"),
      (retry("UNAVAILABLE", "NOPE"), "\(inRetry).retryableStatusCodes[0]", "no status code"),
      (retry("\"UNAVAILABLE\"", "17"), "\(inRetry).retryableStatusCodes[0]", "no status code"),
      (retry("UNAVAILABLE", "OK"), "\(inRetry).retryableStatusCodes[0]", "OK is no error"),
      (
        retry(#""maxAttempts""#, #""x":{}},"hedgingPolicy":{"maxAttempts""#), "methodConfig[0]",
        "exclude each other"
      ),
      (
        #"{"methodConfig":[{"hedgingPolicy":{"maxAttempts":1}}]}"#,
        "methodConfig[0].hedgingPolicy.maxAttempts",
        "at least 2"
      ),
      (#"{"retryThrottling":{"tokenRatio":1}}"#, "retryThrottling", "\"maxTokens\" is missing"),
      (#"{"retryThrottling":{"maxTokens":0,"tokenRatio":1}}"#, "retryThrottling.maxTokens", "at least 1"),
      (
        #"{"retryThrottling":{"maxTokens":1001,"tokenRatio":1}}"#, "retryThrottling.maxTokens", "at most 1000"
      ),
      (
        #"{"retryThrottling":{"maxTokens":1,"tokenRatio":0}}"#, "retryThrottling.tokenRatio", "at least 0.001"
      ),
      (#"{"healthCheckConfig":{"serviceName":1}}"#, "healthCheckConfig.serviceName", "expected a string"),
      (#"{"loadBalancingPolicy":"grpclb"}"#, "loadBalancingPolicy", "pick_first"),
      (policy(""), "loadBalancingConfig", "the list is empty"),
      (policy(#"{"a":{}},{"b":{}}"#), "loadBalancingConfig", "the list has only a, b"),
      (
        policy(#"{"round_robin":{},"pick_first":{}}"#), "loadBalancingConfig[0]",
        "exactly one policy, and has 2"
      ),
      (policy("{}"), "loadBalancingConfig[0]", "exactly one policy, and has 0"),
      (policy(#"{"round_robin":[]}"#), "loadBalancingConfig[0].round_robin", "expected an object"),
      (
        policy(#"{"least_request_experimental":{"choiceCount":1}}"#),
        "loadBalancingConfig[0].least_request_experimental.choiceCount", "at least 2"
      ),
      (
        policy(#"{"weighted_round_robin":{"errorUtilizationPenalty":-1}}"#),
        "loadBalancingConfig[0].weighted_round_robin.errorUtilizationPenalty", "at least 0"
      ),
      (
        policy(#"{"ring_hash_experimental":{"minRingSize":5000}}"#),
        "loadBalancingConfig[0].ring_hash_experimental", "set both"
      ),
      (
        policy(#"{"ring_hash_experimental":{"maxRingSize":8388609}}"#),
        "loadBalancingConfig[0].ring_hash_experimental.maxRingSize", "at most 8388608"
      ),
      (
        policy(#"{"ring_hash_experimental":{"requestHashHeader":"a-bin"}}"#),
        "loadBalancingConfig[0].ring_hash_experimental.requestHashHeader", "-bin"
      ),
      (
        policy(#"{"random_subsetting_experimental":{"subsetSize":0,"childPolicy":[{"round_robin":{}}]}}"#),
        "loadBalancingConfig[0].random_subsetting_experimental.subsetSize", "at least 1"
      ),
      (
        policy(#"{"outlier_detection_experimental":{}}"#),
        "loadBalancingConfig[0].outlier_detection_experimental",
        "\"childPolicy\" is missing"
      ),
      (
        policy(
          #"{"outlier_detection_experimental":{"maxEjectionPercent":101,"childPolicy":[{"round_robin":{}}]}}"#
        ),
        "loadBalancingConfig[0].outlier_detection_experimental.maxEjectionPercent", "at most 100"
      ),
    ]
    for (json, path, problem) in cases {
      do throws(ServiceConfigError) {
        _ = try ServiceConfig(json: json)
        XCTFail("no error: \(json)")
      } catch {
        XCTAssertEqual(error.path, path, "\(json): \(error)")
        XCTAssertTrue(error.problem.contains(problem), "\(json): \(error)")
      }
    }
  }

  func testRandomMutations() {
    var random = SeededRandom(seed: 5)
    var valid = 0
    for _ in 0..<fuzzRounds {
      let text = String(decoding: random.mutated(Array(Self.everything.utf8)), as: UTF8.self)
      if (try? ServiceConfig(json: text)) != nil { valid += 1 }
    }
    XCTAssertGreaterThan(valid, fuzzRounds / 100)
  }

  func testTheWholeListOfCodes() throws {
    for code in Code.allCases where code != .ok {
      let name =
        code == .canceled ? "CANCELLED" : code == .internalError ? "INTERNAL" : Self.upperSnake("\(code)")
      XCTAssertEqual(try Code(JSONNode(.string(name))), code)
      XCTAssertEqual(try Code(JSONNode(.number("\(code.rawValue)"))), code)
    }
  }

  private static func upperSnake(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1)" : $1.uppercased() }
  }
}
