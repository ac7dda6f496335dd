import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import TestSupport
import XCTest

/// The text of cassettes.
final class CassetteFileTests: XCTestCase {
  private static let text = """
    {
      "cassette": 1,
      "exchanges": [
        {
          "call": "/connect.test.v1.TestService/Echo",
          "headers": {
            "accept-encoding": "gzip",
            "authorization": "REDACTED",
            "connect-protocol-version": "1",
            "content-type": "application/proto"
          },
          "http": "POST",
          "over": "HTTP/2",
          "parts": [
            {"ms": 0, "send": {"json": {"payload": {"text": "hello"}}}},
            {"finish": {}, "ms": 0},
            {
              "head": {
                "headers": {
                  "accept-encoding": "gzip,deflate",
                  "content-length": "9",
                  "content-type": "application/proto",
                  "trailer-x-trail": "3",
                  "x-head": ["1", "2"]
                },
                "status": 200
              },
              "ms": 0
            },
            {"ms": 0, "receive": {"json": {"payload": {"text": "hello"}}}},
            {"end": {}, "ms": 0}
          ],
          "wire": "connect+proto"
        }
      ]
    }

    """

  func testText() async throws {
    let setting = WireSetting(.connect)
    let executor = VirtualExecutor()
    let server = InMemoryTransport(executor: executor)
    TapedCalls.serve(server)
    let cassette = try Cassette(configuration: .init(messages: TapedCalls.messages))
    let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
    let response = await recording.unary(
      TestMethods.echo,
      .with { $0.payload.text = "hello" },
      options: CallOptions(
        headers: ["authorization": ["Bearer abcdefgh"], "x-request-id": ["1"]],
        timeout: .seconds(9)
      )
    )
    XCTAssertNotNil(try response.requireMessage())
    try requireEqual(cassette.text, Self.text)
  }

  /// What people change is served.
  func testEditedFile() async throws {
    let text = Self.text.replacing(
      #""receive": {"json": {"payload": {"text": "hello"}}}"#,
      with: #""receive": {"json": {"payload": {"text": "good bye"}}}"#
    )
    let cassette = try Cassette(text: text, configuration: .init(messages: TapedCalls.messages))
    let client = WireSetting(.connect).client(over: try CassetteTransport(cassette))
    let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
    XCTAssertEqual(try response.requireMessage().payload.text, "good bye")
  }

  /// Calls that were not repeated when they were recorded are not repeated in the replay.
  func testFinalFailures() async throws {
    for isFinal in [false, true] {
      let mark = isFinal ? #""isFinal": true, "# : ""
      let text = Self.text.replacing(
        #"{"end": {}, "ms": 0}"#,
        with: #"{"fail": {"code": "unavailable", \#(mark)"message": "no"}, "ms": 0}"#
      )
      let cassette = try Cassette(text: text, configuration: .init(messages: TapedCalls.messages))
      try requireEqual(cassette.text, text)
      let client = WireSetting(.connect).client(over: try CassetteTransport(cassette))
      let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
      XCTAssertEqual(try response.requireError(.unavailable).isFinal, isFinal)
    }
  }

  /// Recorded twice, in another order, the file is the same.
  func testRecordingTwiceGivesTheSameFile() async throws {
    for setting in WireSetting.inMemory {
      var texts: [String] = []
      for order in [["a", "b", "c"], ["c", "a", "b"]] {
        let configuration = Cassette.Configuration(messages: TapedCalls.messages, recordsTiming: false)
        let cassette = try Cassette(configuration: configuration)
        let server = TapedCalls.server(setting)
        let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
        for text in order {
          let options = CallOptions(timeout: .milliseconds(30_000 + texts.count))
          let response = await recording.unary(
            TestMethods.echo,
            .with { $0.payload.text = text },
            options: options
          )
          XCTAssertNotNil(try response.requireMessage())
        }
        texts.append(cassette.text)
      }
      try requireEqual(texts[1], texts[0], "\(setting)")
      XCTAssertFalse(texts[0].contains("\"ms\""))
    }
  }

  /// Each thing that is missing or wrong is an error with the place, and no trap.
  func testBrokenFiles() throws {
    for (old, new, problem) in [
      ("\"cassette\": 1", "\"cassette\": 2", "cassette: is a version that is not known; this one knows 1"),
      ("\"cassette\": 1,", "", "\"cassette\" is missing"),
      ("\"cassette\": 1", "\"cassette\": true", "cassette: expected an integer, found a boolean"),
      ("\"cassette\": 1", "\"casete\": 1", "\"casete\" is not known here"),
      ("\"exchanges\"", "\"calls\"", "\"calls\" is not known here"),
      (
        "\"call\": \"/connect.test.v1.TestService/Echo\",", "", "exchanges[0]: \"call\" is missing"
      ),
      (
        "\"call\": \"/connect.test.v1.TestService/Echo\"", "\"call\": 1",
        "exchanges[0].call: expected a string, found a number"
      ),
      ("\"http\": \"POST\",", "", "exchanges[0]: \"http\" is missing"),
      (
        "\"http\": \"POST\"", "\"http\": \"PUT\"",
        "exchanges[0].http: expected one of GET, POST, found \"PUT\""
      ),
      (
        "\"over\": \"HTTP/2\"", "\"over\": \"HTTP/4\"",
        "exchanges[0].over: expected one of HTTP/1.1, HTTP/2, HTTP/3, found \"HTTP/4\""
      ),
      ("\"wire\": \"connect+proto\"", "\"x\": 1", "exchanges[0]: \"x\" is not known here"),
      ("\"parts\"", "\"bits\"", "exchanges[0]: \"bits\" is not known here"),
      (
        "\"authorization\": \"REDACTED\"", "\"authorization\": {}",
        "exchanges[0].headers.authorization: expected a string"
      ),
      ("[\"1\", \"2\"]", "[\"1\", 2]", "exchanges[0].parts[2].head.headers.x-head[1]: expected a string"),
      ("\"status\": 200", "\"status\": 99", "exchanges[0].parts[2].head.status: has to be at least 200"),
      ("\"status\": 200", "\"state\": 200", "exchanges[0].parts[2].head: \"state\" is not known here"),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"ms\": 0}",
        "exchanges[0].parts[1]: expected one of cancel, end, fail"
      ),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"finish\": {}, \"ms\": -1}",
        "exchanges[0].parts[1].ms: has to be at least 0"
      ),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"finish\": {}, \"end\": {}}",
        "exchanges[0].parts[1]: expected one of"
      ),
      ("{\"finish\": {}, \"ms\": 0}", "{\"finish\": null}", "exchanges[0].parts[1]: expected one of"),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"finish\": {}}, {\"finish\": {}}",
        "exchanges[0].parts[2]: the request ends twice"
      ),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"finish\": {}}, {\"send\": {\"text\": \"\"}}",
        "exchanges[0].parts[2]: a message stands behind the request's end"
      ),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"end\": {}}",
        "exchanges[0].parts[1]: the head of the response is missing before this"
      ),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"receive\": {\"text\": \"\"}}",
        "exchanges[0].parts[1]: the head of the response is missing before this"
      ),
      (
        "{\"finish\": {}, \"ms\": 0}", "{\"cancel\": {}}",
        "exchanges[0].parts[2]: there are parts behind the end"
      ),
      (
        "{\"end\": {}, \"ms\": 0}", "{\"head\": {\"status\": 200, \"headers\": {}}}",
        "the response has two heads"
      ),
      (
        ",\n        {\"end\": {}, \"ms\": 0}", "",
        "exchanges[0].parts: the end is missing: \"end\", \"fail\" or \"cancel\""
      ),
      (
        "{\"end\": {}, \"ms\": 0}", "{\"fail\": {\"code\": \"ok\"}}",
        "exchanges[0].parts[4].fail.code: expected one of"
      ),
      ("{\"end\": {}, \"ms\": 0}", "{\"fail\": {}}", "exchanges[0].parts[4].fail: \"code\" is missing"),
      (
        "\"receive\": {\"json\": {\"payload\": {\"text\": \"hello\"}}}",
        "\"receive\": {\"json\": {\"paylod\": 1}}",
        "exchanges[0].parts[3].receive: is no message of its type"
      ),
      (
        "\"receive\": {\"json\": {\"payload\": {\"text\": \"hello\"}}}", "\"receive\": {\"base64\": \"!\"}",
        "exchanges[0].parts[3].receive.base64: is not base64"
      ),
      (
        "\"receive\": {\"json\": {\"payload\": {\"text\": \"hello\"}}}", "\"receive\": {}",
        "exchanges[0].parts[3].receive: expected one of base64, cut, fields, json, text"
      ),
      (
        "\"receive\": {\"json\": {\"payload\": {\"text\": \"hello\"}}}",
        "\"receive\": {\"text\": \"\", \"flags\": 256}",
        "exchanges[0].parts[3].receive.flags: has to be at most 255"
      ),
      (
        "\"receive\": {\"json\": {\"payload\": {\"text\": \"hello\"}}}",
        "\"receive\": {\"text\": \"\", \"isCompressed\": true}",
        "exchanges[0].parts[3].receive: cannot be compressed"
      ),
      (
        "\"receive\": {\"json\": {\"payload\": {\"text\": \"hello\"}}}",
        "\"receive\": {\"cut\": {\"received\": 99999999999}}",
        "exchanges[0].parts[3].receive.cut.received: has to be at most 67108864"
      ),
      ("\"hello\"", "\"\u{1}\"", "users.json:15:"),
    ] {
      XCTAssertTrue(Self.text.contains(old), old)
      let text = Self.text.replacing(old, with: new, maxReplacements: 1)
      let configuration = Cassette.Configuration(messages: TapedCalls.messages)
      XCTAssertThrowsError(
        try Cassette(text: text, named: "users.json", configuration: configuration),
        "\(old) -> \(new)"
      ) { error in
        XCTAssertTrue(error is CassetteError)
        XCTAssertTrue("\(error)".hasPrefix("users.json"), "\(error)")
        XCTAssertTrue("\(error)".contains(problem), "\(error) does not say: \(problem)")
      }
    }
    XCTAssertThrowsError(try Cassette(text: Self.text)) { error in
      XCTAssertTrue(
        "\(error)".contains("add /connect.test.v1.TestService/Echo to the configuration's messages"),
        "\(error)"
      )
    }
  }

  /// Whatever is cut off or damaged, reading gives a cassette or an error.
  func testDamagedFiles() {
    let bytes = Array(Self.text.utf8)
    var generator = SeededGenerator(seed: 7)
    let configuration = Cassette.Configuration(messages: TapedCalls.messages)
    for length in stride(from: 0, to: bytes.count, by: 7) {
      let text = String(decoding: bytes.prefix(length), as: UTF8.self)
      XCTAssertThrowsError(try Cassette(text: text, configuration: configuration))
    }
    for _ in 0..<500 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        damaged[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(
          in: 0x20...0x7e,
          using: &generator
        )
      }
      _ = try? Cassette(text: String(decoding: damaged, as: UTF8.self), configuration: configuration)
    }
    let deep = String(repeating: "[", count: 100_000)
    XCTAssertThrowsError(try Cassette(text: deep))
  }
}
