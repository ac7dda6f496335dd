import XCTest

@testable import ConnectChannels

final class ServiceConfigChoicesTests: XCTestCase {
  func testTheFirstMatchWins() throws {
    let choices = try ServiceConfigChoices(
      json: """
        [
          { "clientLanguage": ["go", "C++"], "serviceConfig": { "a": 1 } },
          { "clientHostname": ["Host"], "serviceConfig": { "b": 1 } },
          { "clientLanguage": ["Swift"], "percentage": 10, "serviceConfig": { "c": 1 } },
          { "percentage": 0, "serviceConfig": { "never": 1 } },
          { "clientLanguage": [], "percentage": 100, "clientHostname": null, "serviceConfig": { "d": "é" } }
        ]
        """
    )
    XCTAssertEqual(choices.select(hostname: "x", language: "c++", random: 50), #"{"a":1}"#)
    XCTAssertEqual(choices.select(hostname: "Host", random: 5), #"{"b":1}"#)
    XCTAssertEqual(choices.select(hostname: "host", random: 9), #"{"c":1}"#)
    XCTAssertEqual(choices.select(hostname: "host", random: 10), #"{"d":"é"}"#)
    XCTAssertNil(try ServiceConfigChoices(json: "[]").select(hostname: "x", random: 0))
  }

  func testErrors() {
    let cases: [(json: String, path: String, problem: String)] = [
      ("{}", "", "expected a list"), ("[", "", "no JSON"), ("[1]", "[0]", "expected an object"),
      ("[{}]", "[0]", "\"serviceConfig\" is missing"),
      (#"[{"serviceConfig":1}]"#, "[0].serviceConfig", "an object"),
      (#"[{"serviceConfig":{},"x":1}]"#, "[0]", "\"x\" is unknown"),
      (#"[{"serviceConfig":{},"percentage":101}]"#, "[0].percentage", "at most 100"),
      (#"[{"serviceConfig":{},"percentage":0.5}]"#, "[0].percentage", "integer"),
      (#"[{"serviceConfig":{},"clientLanguage":"go"}]"#, "[0].clientLanguage", "a list"),
      (
        #"[{"serviceConfig":{}},{"serviceConfig":{},"clientHostname":[1]}]"#, "[1].clientHostname[0]",
        "a string"
      ),
    ]
    for (json, path, problem) in cases {
      do throws(ServiceConfigError) {
        _ = try ServiceConfigChoices(json: json)
        XCTFail("no error: \(json)")
      } catch {
        XCTAssertEqual(error.path, path, json)
        XCTAssertTrue(error.problem.contains(problem), "\(json): \(error)")
      }
    }
  }

  func testTexts() throws {
    let texts = ["v=spf1", #"GRPC_config=[{"serviceConfig":{}}]"#].map { Array($0.utf8) }
    XCTAssertEqual(try ServiceConfigChoices(texts: texts)?.select(hostname: "", random: 99), "{}")
    XCTAssertNil(try ServiceConfigChoices(texts: [[], Array("grpc_config".utf8)]))
    XCTAssertThrowsError(try ServiceConfigChoices(texts: [Array("grpc_config=".utf8) + [0xff]]))
  }
}
