import NIOCore
import XCTest

@testable import Connect

final class ConnectStreamDecoderTests: XCTestCase {
  private static let headers: Headers = ["content-type": ["application/connect+proto"], "x-a": ["1"]]

  private func decoder(limit: Int = 1000) -> ConnectStreamDecoder {
    ConnectStreamDecoder(contentType: "application/connect+proto", maximumMessageSize: limit)
  }

  private func envelope(_ flags: UInt8, _ message: some Sequence<UInt8>) -> [UInt8] {
    Array(Envelope.encode(ByteBuffer(bytes: message), flags: flags).readableBytesView)
  }

  private func end(_ json: String) -> [UInt8] { self.envelope(2, json.utf8) }

  private func run(
    _ body: [UInt8],
    headers: Headers = ConnectStreamDecoderTests.headers,
    ending: ResponseScript.Ending = .end,
    limit: Int = 1000,
    line: UInt = #line
  ) -> ResponseResults {
    self.checkedRun(
      ResponseScript(headers: headers, body: body, ending: ending),
      self.decoder(limit: limit),
      line: line
    )
  }

  private func messages(_ results: ResponseResults) -> [[UInt8]] {
    results.messages.map { Array($0.readableBytesView) }
  }

  // MARK: Success

  func testMessagesAndTrailers() {
    let results = self.run(
      self.envelope(0, [1, 2]) + self.envelope(0, []) + self.envelope(0, [3])
        + self.end(#"{"metadata":{"X-Cost":["2","3, 4"],"a-bin":["AAEC"],"empty":[],"none":null},"other":1}"#)
    )
    XCTAssertEqual(results.headers, [Self.headers])
    XCTAssertEqual(self.messages(results), [[1, 2], [], [3]])
    XCTAssertEqual(results.code, .ok)
    XCTAssertEqual(results.trailers, ["x-cost": ["2", "3, 4"], "a-bin": ["AAEC"]])
  }

  func testSuccess() {
    for json in [
      "{}", #"{"error":null}"#, #"{"error":null,"metadata":null}"#, #"{"code":"out_of_range"}"#, " { } ",
    ] {
      let results = self.run(self.end(json))
      XCTAssertEqual(results.code, .ok, json)
      XCTAssertEqual(results.trailers, [:])
    }
  }

  func testMetadataNamesAreCaseInsensitive() {
    for _ in 0..<10 {
      let results = self.run(self.end(#"{"metadata":{"x-A":["2"],"X-A":["1"],"x-a":["3"]}}"#))
      XCTAssertEqual(results.trailers?["X-a"], ["1", "2", "3"])
    }
  }

  func testTheEndWaitsForTheEndOfTheBody() {
    let script = ResponseScript(headers: Self.headers, body: self.end("{}"), ending: .none)
    let results = script.run(self.decoder())
    XCTAssertEqual(results.completionCount, 0)
    XCTAssertEqual(results.bufferedByteCount, 0)
  }

  func testMessagesComeAsTheyArrive() {
    var decoder = self.decoder()
    decoder.receive(HTTPResponseHead(status: 200, headers: Self.headers))
    guard case .headers = decoder.next() else { return XCTFail("no headers") }
    XCTAssertNil(decoder.next())
    decoder.receive(ByteBuffer(bytes: self.envelope(0, [7]) + [0, 0]))
    XCTAssertEqual(decoder.bufferedByteCount, 8)
    XCTAssertEqual(decoder.next()?.message, ByteBuffer(bytes: [7]))
    XCTAssertEqual(decoder.bufferedByteCount, 2)
    XCTAssertNil(decoder.next())
  }

  // MARK: Errors from the server

  func testAnError() {
    let results = self.run(
      self.envelope(0, [1])
        + self.end(
          #"{"error":{"code":"out_of_range","message":"oops","foobar":1,"details":[{"type":"a.B","value":"AAE"}]},"#
            + #""metadata":{"x-b":["2"]}}"#
        )
    )
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .outOfRange)
    XCTAssertEqual(results.error?.message, "oops")
    XCTAssertEqual(results.error?.details, [.init(type: "a.B", value: ByteBuffer(bytes: [0, 1]))])
    XCTAssertEqual(results.error?.httpStatus, 200)
    XCTAssertEqual(results.trailers, ["x-b": ["2"]])
    XCTAssertEqual(
      results.error?.metadata,
      [
        "content-type": ["application/connect+proto"], "x-a": ["1"], "x-b": ["2"],
      ]
    )
  }

  func testAnUnusableCodeIsUnknown() {
    for code in ["null", #""foobar""#, #""ok""#, "5", "[]"] {
      let results = self.run(self.end(#"{"error":{"code":\#(code),"message":"oops"}}"#))
      XCTAssertEqual(results.code, .unknown, code)
      XCTAssertEqual(results.error?.message, "oops")
    }
    XCTAssertEqual(self.run(self.end(#"{"error":{}}"#)).code, .unknown)
    XCTAssertEqual(self.run(self.end(#"{"error":{"message":"oops"}}"#)).error?.message, "oops")
  }

  func testAnEndThatDoesNotParse() {
    for json in [
      "", "null", "[]", "{", #"{"error":5}"#, #"{"metadata":[]}"#, #"{"metadata":{"a":"b"}}"#, "{}x",
    ] {
      let results = self.run(self.envelope(0, [1]) + self.end(json))
      XCTAssertEqual(self.messages(results), [[1]], json)
      XCTAssertEqual(results.code, .internalError, json)
      XCTAssertEqual(results.error?.message, "end-of-stream message does not parse")
    }
  }

  func testTrailersHaveALimit() {
    let value = String(repeating: "x", count: 10_000)
    func end(_ count: Int) -> [UInt8] {
      let values = Array(repeating: #""\#(value)""#, count: count).joined(separator: ",")
      return self.end(#"{"metadata":{"a":[\#(values)]}}"#)
    }
    let good = ResponseScript(headers: Self.headers, body: end(6)).run(self.decoder(limit: 5))
    XCTAssertEqual(good.code, .ok)
    XCTAssertEqual(good.trailers?.count, 6)
    let bad = ResponseScript(headers: Self.headers, body: end(7)).run(self.decoder(limit: 5))
    XCTAssertEqual(bad.code, .resourceExhausted)
    let tooLarge = self.run([2, 0, 0x10, 0, 1])
    XCTAssertEqual(tooLarge.code, .resourceExhausted)
  }

  func testHostileJSON() {
    let deep = String(repeating: "[", count: 100_000)
    for json in [deep, #"{"x":"# + deep, #"{"error":{"details":"# + deep, #"{"metadata":{"a":"# + deep] {
      let script = ResponseScript(headers: Self.headers, body: self.end(json))
      XCTAssertEqual(script.run(self.decoder()).code, .internalError)
    }
  }

  // MARK: Broken streams

  func testNoEndOfStream() {
    let results = self.run(self.envelope(0, [1]))
    XCTAssertEqual(self.messages(results), [[1]])
    XCTAssertEqual(results.code, .internalError)
    XCTAssertEqual(
      results.error?.message,
      "response ended without an end-of-stream message; the server or a proxy broke off"
    )
    XCTAssertEqual(self.run([]).code, .internalError)
  }

  func testATruncatedEnvelope() {
    for rest in [[0], [0, 0, 0], [0, 0, 0, 0, 10], [0, 0, 0, 0, 10, 1, 2]] as [[UInt8]] {
      let results = self.run(self.envelope(0, [1]) + rest)
      XCTAssertEqual(self.messages(results), [[1]])
      XCTAssertEqual(results.code, .internalError)
      XCTAssertEqual(results.error?.message, "response ended in the middle of a message")
    }
  }

  func testBytesBehindTheEnd() {
    for rest in [[0], self.envelope(0, [1]), self.end("{}")] as [[UInt8]] {
      let results = self.run(self.end("{}") + rest)
      XCTAssertEqual(results.code, .internalError)
      XCTAssertEqual(self.messages(results), [])
      XCTAssertTrue(results.error?.message?.contains("behind the end-of-stream message") == true)
    }
  }

  func testFlags() {
    for flags in [4, 8, 0x80, 0xff, 6] as [UInt8] {
      let results = self.run(self.envelope(0, [1]) + self.envelope(flags, "{}".utf8) + self.end("{}"))
      XCTAssertEqual(self.messages(results), [[1]])
      XCTAssertEqual(results.code, .internalError)
      XCTAssertTrue(results.error?.message?.contains("flags \(flags)") == true)
    }
  }

  func testCompressedWithoutAnEncoding() {
    for headers in [
      Self.headers,
      ["content-type": ["application/connect+proto"], "connect-content-encoding": ["identity"]],
    ] as [Headers] {
      for flags in [1, 3] as [UInt8] {
        let results = self.run(
          self.envelope(0, [1]) + self.envelope(flags, "{}".utf8) + self.end("{}"),
          headers: headers
        )
        XCTAssertEqual(self.messages(results), [[1]])
        XCTAssertEqual(results.code, .internalError)
      }
    }
  }

  func testAnUnknownEncoding() {
    let headers: Headers = [
      "content-type": ["application/connect+proto"], "connect-content-encoding": ["foo"],
    ]
    let results = self.run(self.envelope(0, [1]) + self.end("{}"), headers: headers)
    XCTAssertEqual(results.code, .internalError)
    XCTAssertEqual(results.messages, [])
    XCTAssertEqual(
      results.error?.message,
      "response has unknown connect-content-encoding 'foo', which the request did not offer (see ProtocolClientConfig.compression)"
    )
    // That of HTTP as a whole is not ours.
    let identity: Headers = [
      "content-type": ["application/connect+proto; a=b"], "content-encoding": ["identity"],
    ]
    XCTAssertEqual(self.run(self.end("{}"), headers: identity).code, .ok)
  }

  func testContentTypes() {
    let cases: [(String, Code)] = [
      ("application/connect+json", .internalError), ("application/CONNECT+json; x", .internalError),
      ("application/proto", .unknown), ("application/json", .unknown), ("text/html", .unknown),
      ("application/grpc", .unknown), ("application/connect", .unknown), ("", .unknown),
    ]
    for (type, code) in cases {
      let results = self.run(self.end("{}"), headers: ["content-type": [type]])
      XCTAssertEqual(results.code, code, type)
      XCTAssertEqual(results.messages, [])
    }
    XCTAssertEqual(self.run(self.end("{}"), headers: [:]).code, .unknown)
    XCTAssertEqual(
      self.run(self.end("{}"), headers: ["content-type": ["Application/Connect+Proto ;a=b"]]).code,
      .ok
    )
  }

  func testTheSizeLimit() {
    let good = self.run(self.envelope(0, Array(repeating: 1, count: 10)) + self.end("{}"), limit: 10)
    XCTAssertEqual(good.code, .ok)
    let bad = self.run(
      self.envelope(0, [1]) + self.envelope(0, Array(repeating: 1, count: 11)) + self.end("{}"),
      limit: 10
    )
    XCTAssertEqual(self.messages(bad), [[1]])
    XCTAssertEqual(bad.code, .resourceExhausted)
    XCTAssertEqual(
      bad.error?.message,
      "received message of 11 bytes, which is over the limit of 10 bytes (maximumReceivedMessageSize)"
    )
    XCTAssertEqual(bad.error?.httpStatus, 200)
  }

  func testAFailure() {
    let reset = ConnectError(code: .unavailable, message: "reset")
    let results = self.run(
      self.envelope(0, [1]) + self.envelope(0, [2]) + [0, 0, 0, 0, 9, 1],
      ending: .failure(reset)
    )
    XCTAssertEqual(self.messages(results), [[1], [2]])
    XCTAssertEqual(results.code, .unavailable)
    XCTAssertEqual(results.error?.message, "reset")
    XCTAssertEqual(results.error?.metadata, Self.headers)
    XCTAssertEqual(results.error?.httpStatus, 200)
    XCTAssertEqual(results.trailers, [:])
  }

  func testAFailureAfterTheEndOfStream() {
    let reset = ConnectError(code: .unavailable, message: "reset")
    XCTAssertEqual(self.run(self.end("{}"), ending: .failure(reset)).code, .ok)
    let error = self.run(self.end(#"{"error":{"code":"aborted"}}"#), ending: .failure(reset))
    XCTAssertEqual(error.code, .aborted)
  }

  func testNoHead() {
    let failed = ResponseScript(status: nil, ending: .failure(ConnectError(code: .unavailable)))
    XCTAssertEqual(self.checkedRun(failed, self.decoder()).code, .unavailable)
    XCTAssertEqual(self.checkedRun(ResponseScript(status: nil), self.decoder()).code, .internalError)
  }

  // MARK: Other statuses

  func testOtherStatuses() {
    func run(_ status: Int, _ type: String, _ body: String, _ ending: ResponseScript.Ending = .end)
      -> ConnectError?
    {
      let script = ResponseScript(
        status: status,
        headers: ["content-type": [type]],
        body: body.utf8,
        ending: ending
      )
      let results = self.checkedRun(script, self.decoder(limit: 5))
      XCTAssertEqual(results.error?.httpStatus, status)
      return results.error
    }
    XCTAssertEqual(run(502, "text/html", "<html>")?.code, .unavailable)
    XCTAssertEqual(run(502, "text/html", "<html>")?.message, "HTTP status 502 Bad Gateway")
    XCTAssertEqual(run(404, "application/connect+proto", "")?.code, .unimplemented)
    XCTAssertEqual(run(415, "", "")?.code, .unknown)
    let error = run(403, "application/json; charset=utf-8", #"{"code":"aborted","message":"oops"}"#)
    XCTAssertEqual(error?.code, .aborted)
    XCTAssertEqual(error?.message, "oops")
    XCTAssertEqual(run(403, "application/json", "{")?.code, .permissionDenied)
    XCTAssertEqual(
      run(403, "application/json", "{", .failure(ConnectError(code: .internalError)))?.code,
      .permissionDenied
    )
  }
}
