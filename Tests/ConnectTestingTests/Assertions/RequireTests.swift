import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// The helpers pass what is right, and describe what is not.
final class RequireTests: XCTestCase {
  private func failure(_ work: () throws -> Void) -> String {
    do {
      try work()
      return "no failure"
    } catch {
      return "\(error)"
    }
  }

  func testEqualValuesPass() throws {
    try requireEqual(1, 1)
    try requireEqual(EchoResponse(), EchoResponse())
  }

  func testDifferenceOfMessagesIsShownByLine() {
    let actual = EchoResponse.with {
      $0.payload.text = "a"
      $0.payload.small = 2
    }
    let expected = EchoResponse.with {
      $0.payload.text = "a"
      $0.payload.small = 3
    }
    XCTAssertEqual(
      self.failure { try requireEqual(actual, expected, "the answer", file: "F", line: 1) },
      """
      the answer: not as expected (- expected, + actual)
        payload {
          text: "a"
      -   small: 3
      +   small: 2
        }
      F:1
      """
    )
  }

  func testDifferenceOfArraysIsShownByElement() {
    XCTAssertEqual(
      self.failure { try requireEqual([1, 2, 4], [1, 3, 4], file: "F", line: 1) },
      """
      Array<Int>: not as expected (- expected, + actual)
        - 1
      - - 3
      + - 2
        - 4
      F:1
      """
    )
  }

  func testDifferenceOfWhatLooksTheSame() {
    XCTAssertEqual(
      self.failure { try requireEqual(nil, Optional("nil"), "a text", file: "F", line: 1) },
      """
      a text: not as expected (- expected, + actual)
      - Optional("nil")
      + nil
      F:1
      """
    )
    XCTAssertEqual(
      self.failure { try requireEqual("a ", "a", file: "F", line: 1) },
      #"""
      String: not as expected (- expected, + actual)
      - "a"
      + "a "
      F:1
      """#
    )
    struct Opaque: Equatable, CustomStringConvertible {
      let number: Int
      var description: String { "opaque" }
    }
    XCTAssertEqual(
      self.failure { try requireEqual(Opaque(number: 1), Opaque(number: 2), file: "F", line: 1) },
      """
      Opaque: not as expected (- expected, + actual)
        opaque
      (what differs is in no description)
      F:1
      """
    )
  }

  func testDifferenceOfDictionariesIsShownByEntry() {
    let actual = ["b": 1, "a": 2, "c": 3]
    let expected = ["a": 2, "b": 2, "c": 3]
    XCTAssertEqual(
      self.failure { try requireEqual(actual, expected, file: "F", line: 1) },
      """
      Dictionary<String, Int>: not as expected (- expected, + actual)
        a: 2
      - b: 2
      + b: 1
        c: 3
      F:1
      """
    )
  }

  func testDifferenceOfArraysOfMessages() {
    let messages = [CountResponse.with { $0.number = 1 }, .with { $0.number = 2 }]
    XCTAssertEqual(
      self.failure { try requireEqual(messages, [messages[1]], "the messages", file: "F", line: 1) },
      """
      the messages: not as expected (- expected, + actual)
      + - number: 1
        - number: 2
      F:1
      """
    )
  }

  func testDifferenceOfOptionals() {
    XCTAssertEqual(
      self.failure { try requireEqual(nil, "b", "the name", file: "F", line: 1) },
      """
      the name: not as expected (- expected, + actual)
      - b
      + nil
      F:1
      """
    )
  }

  func testLongTextsAreComparedFromTheirFirstDifference() {
    let expected = (0..<1000).map { "\($0)" }.joined(separator: "\n")
    let text = self.failure { try requireEqual("0\n1\nx", expected) }
    XCTAssertTrue(text.contains("(2 lines are the same)\n- 2\n"), text)
    XCTAssertTrue(text.contains("+ x"), text)
    XCTAssertLessThan(text.split(separator: "\n").count, 410)
  }

  func testMessageOfAResponse() throws {
    let good = ResponseMessage(message: 3)
    XCTAssertEqual(try good.requireMessage(), 3)
    let detail = try ConnectError.Detail(Connect_Test_V1_ErrorInfo())
    let bad = ResponseMessage<Int>(
      error: ConnectError(
        code: .notFound,
        message: "none",
        details: [detail],
        metadata: ["x-a": ["1"]],
        httpStatus: 404
      )
    )
    XCTAssertEqual(
      self.failure { _ = try bad.requireMessage(file: "F", line: 1) },
      """
      expected a message, and the call failed with not_found: none
        HTTP status: 404
        details: connect.test.v1.ErrorInfo
        x-a: 1
      F:1
      """
    )
  }

  func testErrorOfAResponse() throws {
    let bad = ResponseMessage<Int>(error: ConnectError(code: .notFound, message: "none"))
    XCTAssertEqual(try bad.requireError(.notFound).message, "none")
    XCTAssertEqual(
      self.failure { try bad.requireError(.aborted, file: "F", line: 1) },
      "expected the call to fail with aborted, and it failed with not_found: none\nF:1"
    )
    XCTAssertEqual(
      self.failure { try ResponseMessage(message: 3).requireError(.aborted, file: "F", line: 1) },
      "expected the call to fail with aborted, and it succeeded with\n3\nF:1"
    )
  }

  func testDetails() throws {
    let detail = try ConnectError.Detail(Connect_Test_V1_ErrorInfo.with { $0.reason = "a" })
    let error = ConnectError(code: .aborted, details: [detail])
    XCTAssertEqual(try error.requireDetail(Connect_Test_V1_ErrorInfo.self).reason, "a")
    XCTAssertEqual(
      self.failure { _ = try error.requireDetail(Connect_Test_V1_Payload.self, file: "F", line: 1) },
      """
      expected a detail of type connect.test.v1.Payload in aborted
        details: connect.test.v1.ErrorInfo
      F:1
      """
    )
  }

  func testCollectedStreams() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockCount.answer(
      .messages([.with { $0.number = 1 }]),
      .messages([.with { $0.number = 1 }], error: ConnectError(code: .aborted, message: "no"))
    )
    let good = try await mock.count(request: CountRequest(), options: CallOptions()).results.collected()
    XCTAssertEqual(try good.requireMessages().count, 1)
    XCTAssertEqual(
      self.failure { try good.requireError(.aborted, file: "F", line: 1) },
      "expected the stream to fail with aborted, and after 1 messages it ended well\nF:1"
    )
    let bad = try await mock.count(request: CountRequest(), options: CallOptions()).results.collected()
    XCTAssertEqual(
      self.failure { _ = try bad.requireMessages(file: "F", line: 1) }.split(separator: "\n").first,
      "expected a good end, and after 1 messages the stream failed with aborted: no"
    )
    XCTAssertTrue(
      self.failure { try bad.requireError(.ok, file: "F", line: 1) }.hasPrefix(
        "expected the stream to fail with ok, and after 1 messages it failed with aborted: no"
      )
    )
  }

  func testStreamThatDoesNotEnd() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockCount.answer { _, responses, context in
      try await responses.send(CountResponse())
      await context.waitUntilClosed()
    }
    do {
      let stream = mock.count(request: CountRequest(), options: CallOptions())
      _ = try await stream.results.collected(within: .milliseconds(20))
      XCTFail("the stream ended")
    } catch {
      XCTAssertEqual("\(error)", "the stream did not end within 0.02 seconds; 1 messages came")
    }
    let code = try await mock.mockCount.nextCall().end()
    XCTAssertEqual(code, .canceled)
  }
}
