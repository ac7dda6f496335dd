import NIOCore
import SwiftProtobuf
import XCTest

@testable import Connect

final class ConnectUnaryDecoderTests: XCTestCase {
  private func decoder(limit: Int = 1000, contentType: String = "application/proto") -> ConnectUnaryDecoder {
    ConnectUnaryDecoder(contentType: contentType, maximumMessageSize: limit)
  }

  private func run(_ script: ResponseScript, limit: Int = 1000, line: UInt = #line) -> ResponseResults {
    self.checkedRun(script, self.decoder(limit: limit), line: line)
  }

  private func runError(
    _ status: Int,
    _ body: String,
    type: String = "application/json",
    line: UInt = #line
  ) -> ConnectError {
    let script = ResponseScript(status: status, headers: ["content-type": [type]], body: body.utf8)
    let results = self.run(script, line: line)
    XCTAssertEqual(results.messages, [], line: line)
    XCTAssertEqual(results.error?.httpStatus, status, line: line)
    guard let error = results.error else {
      XCTFail("no error", line: line)
      return ConnectError(code: .unknown)
    }
    return error
  }

  // MARK: Success

  func testAMessage() {
    let results = self.run(
      ResponseScript(
        headers: [
          "content-type": ["application/proto"], "x-a": ["1, 2", "3"], "Trailer-X-Cost": ["4", "5"],
          "trailer-b-bin": ["AAEC"], "trailer": ["x"], "trailer-": ["y"],
        ],
        body: [1, 2, 3]
      )
    )
    XCTAssertEqual(
      results.headers.first,
      [
        "content-type": ["application/proto"], "x-a": ["1, 2", "3"], "trailer": ["x"], "trailer-": ["y"],
      ]
    )
    XCTAssertEqual(results.messages, [ByteBuffer(bytes: [1, 2, 3])])
    XCTAssertEqual(results.code, .ok)
    XCTAssertEqual(results.trailers, ["x-cost": ["4", "5"], "b-bin": ["AAEC"]])
  }

  func testAnEmptyMessage() {
    let results = self.run(ResponseScript())
    XCTAssertEqual(results.messages, [ByteBuffer()])
    XCTAssertEqual(results.code, .ok)
    XCTAssertEqual(results.trailers, [:])
  }

  func testHeadersComeBeforeTheBody() {
    var decoder = self.decoder()
    XCTAssertNil(decoder.next())
    decoder.receive(HTTPResponseHead(status: 200, headers: ["content-type": ["application/proto"]]))
    guard case .headers = decoder.next() else { return XCTFail("no headers") }
    XCTAssertNil(decoder.next())
    decoder.receive(ByteBuffer(bytes: [1]))
    XCTAssertNil(decoder.next())
    XCTAssertEqual(decoder.bufferedByteCount, 1)
  }

  func testABodyInOneChunkIsNotCopied() {
    let body = ByteBuffer(repeating: 1, count: 500)
    var decoder = self.decoder()
    decoder.receive(HTTPResponseHead(status: 200, headers: ["content-type": ["application/proto"]]))
    decoder.receive(body)
    decoder.receiveEnd(trailers: [:])
    _ = decoder.next()
    let message = decoder.next()?.message
    XCTAssertEqual(
      message?.withUnsafeReadableBytes { $0.baseAddress },
      body.withUnsafeReadableBytes { $0.baseAddress }
    )
  }

  // MARK: Content types and encodings

  func testContentTypesThatMatch() {
    for type in [
      "application/proto", "Application/Proto", "application/proto; charset=utf-8", "application/proto ;x",
    ] {
      let results = self.run(ResponseScript(headers: ["content-type": [type]]))
      XCTAssertEqual(results.code, .ok, type)
    }
    let json = ConnectUnaryDecoder(contentType: "application/json", maximumMessageSize: 10)
    let script = ResponseScript(
      headers: ["content-type": ["application/json; charset=utf-8"]],
      body: "{}".utf8
    )
    XCTAssertEqual(self.checkedRun(script, json).code, .ok)
  }

  func testContentTypesThatDoNotMatch() {
    let cases: [(String, Code)] = [
      ("application/json", .internalError), ("application/x; y=z", .internalError), ("image/jpeg", .unknown),
      ("text/html", .unknown), ("", .unknown), ("application/grpc", .unknown),
      ("application/connect+proto", .unknown), ("application/grpc-web+proto", .unknown),
    ]
    for (type, code) in cases {
      let results = self.run(ResponseScript(headers: ["content-type": [type]], body: [1]))
      XCTAssertEqual(results.code, code, type)
      XCTAssertEqual(results.messages, [])
      XCTAssertEqual(
        results.error?.message,
        "response has content-type '\(type)', expected 'application/proto'"
      )
    }
    XCTAssertEqual(self.run(ResponseScript(headers: [:])).code, .unknown)
  }

  func testAForeignContentTypeIsKnownAtOnce() {
    let script = ResponseScript(headers: ["content-type": ["text/html"]], ending: .none)
    XCTAssertEqual(script.run(self.decoder()).code, .unknown)
  }

  func testEncodings() {
    for encoding in ["gzip", "foo", "gzip, br"] {
      let headers: Headers = ["content-type": ["application/proto"], "content-encoding": [encoding]]
      for body in [[], [1, 2]] as [[UInt8]] {
        let results = self.run(ResponseScript(headers: headers, body: body))
        XCTAssertEqual(results.code, .internalError)
        XCTAssertEqual(
          results.error?.message,
          "response has unknown content-encoding '\(encoding)', which the request did not offer (see ProtocolClientConfig.compression)"
        )
      }
    }
    let identity: Headers = ["content-type": ["application/proto"], "content-encoding": ["Identity"]]
    XCTAssertEqual(self.run(ResponseScript(headers: identity, body: [1])).code, .ok)
  }

  // MARK: Limits

  func testTheSizeLimit() {
    let good = ResponseScript(body: Array(repeating: 1, count: 10))
    XCTAssertEqual(self.run(good, limit: 10).code, .ok)
    let bad = self.run(ResponseScript(body: Array(repeating: 1, count: 11)), limit: 10)
    XCTAssertEqual(bad.code, .resourceExhausted)
    XCTAssertEqual(
      bad.error?.message,
      "received message of at least 11 bytes, which is over the limit of 10 bytes (maximumReceivedMessageSize)"
    )
    XCTAssertEqual(bad.messages, [])
  }

  func testTheContentLengthIsCheckedUpFront() {
    let headers: Headers = ["content-type": ["application/proto"], "content-length": ["11"]]
    let results = ResponseScript(headers: headers, ending: .none).run(self.decoder(limit: 10))
    XCTAssertEqual(results.code, .resourceExhausted)
    XCTAssertEqual(
      results.error?.message,
      "received message of 11 bytes, which is over the limit of 10 bytes (maximumReceivedMessageSize)"
    )
    for length in ["x", "-5", "", "99999999999999999999", "4"] {
      let headers: Headers = ["content-type": ["application/proto"], "content-length": [length]]
      XCTAssertEqual(self.run(ResponseScript(headers: headers, body: [1, 2, 3, 4])).code, .ok, length)
    }
  }

  func testNoLimitAtAll() {
    let script = ResponseScript(body: [1, 2, 3])
    XCTAssertEqual(self.run(script, limit: Int.max).messages, [ByteBuffer(bytes: [1, 2, 3])])
    let headers: Headers = ["content-type": ["application/proto"], "content-length": ["\(Int.max)"]]
    let results = ResponseScript(headers: headers, body: [1], ending: .none).run(self.decoder(limit: Int.max))
    XCTAssertEqual(results.code, .resourceExhausted)
    let broken = ResponseScript(
      headers: ["content-type": ["application/proto"], "content-length": ["4294967295"]],
      body: [1, 2],
      ending: .failure(ConnectError(code: .unavailable))
    )
    XCTAssertEqual(self.run(broken, limit: Int.max).code, .unavailable)
  }

  func testErrorBodiesHaveALimitOfTheirOwn() {
    let message = String(repeating: "x", count: 100_000)
    let script = ResponseScript(
      status: 503,
      headers: ["content-type": ["application/json"], "content-length": ["100100"]],
      body: #"{"code":"aborted","message":"\#(message)"}"#.utf8
    )
    XCTAssertEqual(script.run(self.decoder(limit: 5)).error?.message, message)
    let endless = ResponseScript(
      status: 503,
      headers: ["content-type": ["application/json"]],
      body: Array(repeating: 0x20, count: ConnectErrorJSON.maximumSize + 1),
      ending: .none
    )
    let results = endless.run(self.decoder())
    XCTAssertEqual(results.code, .unavailable)
    XCTAssertEqual(results.bufferedByteCount, 0)
  }

  // MARK: Errors

  /// JSON alone does not make an answer of Connect.
  func testWhoHasNamedTheCode() {
    for (body, isNamed) in [
      (#"{"code":"not_found"}"#, true), (#"{"code":"odd","message":"x"}"#, false), (#"{"code":5}"#, false),
      (#"{"message":"Not Found"}"#, false), ("{}", false), ("<html>", false),
    ] {
      let script = ResponseScript(
        status: 404,
        headers: ["content-type": ["application/json"]],
        body: body.utf8
      )
      XCTAssertEqual(self.run(script).error?.hasConnectCode, isNamed, body)
    }
  }

  func testAnError() {
    let results = self.run(
      ResponseScript(
        status: 501,
        headers: ["content-type": ["application/json"], "x-a": ["1"], "trailer-x-b": ["2"]],
        body: #"{"code":"out_of_range","message":"oops","foobar":[{"a":null}],"debug":{}}"#.utf8
      )
    )
    XCTAssertEqual(results.code, .outOfRange)
    XCTAssertEqual(results.error?.message, "oops")
    XCTAssertEqual(results.error?.httpStatus, 501)
    XCTAssertEqual(results.headers.first, ["content-type": ["application/json"], "x-a": ["1"]])
    XCTAssertEqual(results.trailers, ["x-b": ["2"]])
    XCTAssertEqual(
      results.error?.metadata,
      ["content-type": ["application/json"], "x-a": ["1"], "x-b": ["2"]]
    )
  }

  func testEveryCode() {
    for code in Code.allCases where code != .ok {
      XCTAssertEqual(self.runError(418, #"{"code":"\#(code.name)"}"#).code, code)
    }
  }

  func testCodesThatAreNone() {
    for code in ["null", #""foobar""#, #""ok""#, #""""#, "5", "{}", "[]", "true"] {
      let error = self.runError(429, #"{"code":\#(code),"message":"oops"}"#)
      XCTAssertEqual(error.code, .unavailable, code)
      XCTAssertEqual(error.message, "oops", code)
    }
    XCTAssertEqual(self.runError(401, #"{"message":"oops"}"#).code, .unauthenticated)
    XCTAssertEqual(self.runError(401, #"{"message":"oops"}"#).message, "oops")
    XCTAssertEqual(self.runError(401, "{}").message, "HTTP status 401 Unauthorized")
    XCTAssertNil(self.runError(401, #"{"code":"aborted"}"#).message)
    for message in ["null", "5", "[]", "{}"] {
      let error = self.runError(401, #"{"code":"aborted","message":\#(message)}"#)
      XCTAssertEqual(error.code, .aborted)
      XCTAssertNil(error.message)
    }
  }

  func testBodiesThatDoNotParse() {
    for body in [
      "", "null", "[]", "5", #""x""#, "{", #"{"code":"aborted""#, "<html>", "\0", #"{"code":"aborted"}x"#,
    ] {
      let error = self.runError(404, body)
      XCTAssertEqual(error.code, .unimplemented, body)
      XCTAssertEqual(error.message, "HTTP status 404 Not Found", body)
    }
    let script = ResponseScript(
      status: 404,
      headers: ["content-type": ["application/json"]],
      body: [0x7b, 0xff, 0xfe, 0x7d]
    )
    XCTAssertEqual(self.run(script).code, .unimplemented)
  }

  func testHTTPStatus() {
    let table: [(Int, Code)] = [
      (400, .internalError), (401, .unauthenticated), (403, .permissionDenied), (404, .unimplemented),
      (429, .unavailable), (502, .unavailable), (503, .unavailable), (504, .unavailable), (408, .unknown),
      (409, .unknown), (413, .unknown), (415, .unknown), (418, .unknown), (500, .unknown), (505, .unknown),
      (800, .unknown), (204, .unknown), (302, .unknown), (304, .unknown), (0, .unknown), (-1, .unknown),
    ]
    for (status, code) in table {
      let error = self.runError(status, "<html>", type: "text/html")
      XCTAssertEqual(error.code, code, "\(status)")
      XCTAssertEqual(error.message, HTTPStatus.describe(status))
      XCTAssertEqual(self.runError(status, "").code, code)
    }
  }

  func testTheContentTypeOfErrors() {
    let body = #"{"code":"aborted"}"#
    for type in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
      XCTAssertEqual(self.runError(403, body, type: type).code, .aborted)
    }
    for type in ["application/proto", "text/json", "application/problem+json"] {
      XCTAssertEqual(self.runError(403, body, type: type).code, .permissionDenied)
    }
    XCTAssertEqual(
      self.run(ResponseScript(status: 403, headers: [:], body: body.utf8)).code,
      .permissionDenied
    )
  }

  func testAnEncodedErrorBody() {
    let headers: Headers = ["content-type": ["application/json"], "content-encoding": ["foo"]]
    XCTAssertEqual(self.run(ResponseScript(status: 403, headers: headers, body: [1])).code, .internalError)
  }

  func testHostileJSON() {
    for open in ["[", #"{"a":"#, #"{"details":["#] {
      for closes in [true, false] {
        let count = 100_000
        let body =
          #"{"code":"aborted","x":"# + String(repeating: open, count: count)
          + (closes ? String(repeating: open.hasPrefix("{") ? "}" : "]", count: count) + "}" : "")
        let script = ResponseScript(
          status: 503,
          headers: ["content-type": ["application/json"]],
          body: body.utf8
        )
        XCTAssertEqual(script.run(self.decoder()).code, .unavailable)
      }
    }
    _ = self.runError(503, #"{"code":"aborted","message":"\ud800","x":1e999999}"#)
  }

  // MARK: Broken responses

  func testAFailure() {
    let reset = ConnectError(code: .internalError, message: "reset")
    let before = self.run(ResponseScript(status: nil, ending: .failure(reset)))
    XCTAssertEqual(before.error?.message, "reset")
    XCTAssertNil(before.error?.httpStatus)

    let during = self.run(
      ResponseScript(
        headers: ["content-type": ["application/proto"], "x-a": ["1"], "trailer-b": ["2"]],
        body: [1, 2],
        ending: .failure(reset)
      )
    )
    XCTAssertEqual(during.code, .internalError)
    XCTAssertEqual(during.messages, [])
    XCTAssertEqual(during.error?.httpStatus, 200)
    XCTAssertEqual(during.error?.metadata["x-a"], ["1"])
    XCTAssertEqual(during.error?.metadata["b"], ["2"])
  }

  func testAFailureInAnErrorBody() {
    func code(_ failure: Code) -> Code? {
      self.run(
        ResponseScript(
          status: 503,
          headers: ["content-type": ["application/json"]],
          body: #"{"code":"#.utf8,
          ending: .failure(ConnectError(code: failure))
        )
      ).code
    }
    XCTAssertEqual(code(.internalError), .unavailable)
    XCTAssertEqual(code(.deadlineExceeded), .deadlineExceeded)
    XCTAssertEqual(code(.canceled), .canceled)
  }

  func testAnEndWithoutAHead() {
    XCTAssertEqual(self.run(ResponseScript(status: nil)).code, .internalError)
  }
}
