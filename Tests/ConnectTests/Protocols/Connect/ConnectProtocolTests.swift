import XCTest

@testable import Connect

final class ConnectProtocolTests: XCTestCase {
  private let wire = ConnectProtocol()

  private func headers(_ headers: Headers = [:], timeout: Duration? = nil) -> Headers {
    self.wire.requestHeaders(
      headers,
      for: WireRequest(contentType: "application/proto", streamType: .unary, timeout: timeout)
    )
  }

  func testContentTypes() {
    XCTAssertEqual(self.wire.contentType(codecName: "proto", isUnary: true), "application/proto")
    XCTAssertEqual(self.wire.contentType(codecName: "json", isUnary: false), "application/connect+json")
    for type in [StreamType.clientStream, .serverStream, .bidirectionalStream] {
      XCTAssertTrue(self.wire.envelopesMessages(of: type))
    }
    XCTAssertFalse(self.wire.envelopesMessages(of: .unary))
  }

  func testRequestHeaders() {
    XCTAssertEqual(
      self.headers(["x-a": ["1", "2"]]),
      [
        "x-a": ["1", "2"], "content-type": ["application/proto"], "connect-protocol-version": ["1"],
        "user-agent": ["connect-swift-linux/0.1.0"],
      ]
    )
    XCTAssertEqual(self.headers(["User-Agent": ["me"]])["user-agent"], ["me"])
  }

  func testTimeouts() {
    let cases: [(Duration, String)] = [
      (.seconds(5), "5000"), (.milliseconds(1), "1"), (.nanoseconds(1), "1"), (.microseconds(1001), "2"),
      (.seconds(1) + .nanoseconds(1), "1001"), (Duration(secondsComponent: 0, attosecondsComponent: 1), "1"),
      (.milliseconds(9_999_999_999), "9999999999"), (.milliseconds(9_999_999_998), "9999999998"),
      (.milliseconds(10_000_000_000), "9999999999"), (.seconds(Int64.max), "9999999999"),
      (Duration(secondsComponent: Int64.max, attosecondsComponent: 999_999_999_999_999_999), "9999999999"),
      (.zero, "1"), (.seconds(-5), "1"), (.nanoseconds(-1), "1"),
    ]
    for (timeout, text) in cases {
      XCTAssertEqual(self.headers(timeout: timeout)["connect-timeout-ms"], [text], "\(timeout)")
    }
    XCTAssertFalse(self.headers().contains("connect-timeout-ms"))
  }

  func testDecoders() {
    let unary = self.wire.makeDecoder(
      contentType: "a",
      streamType: .unary,
      maximumMessageSize: 1,
      maximumMetadataSize: 1,
      acceptedEncodings: .none,
      buffers: nil
    )
    XCTAssertTrue(unary is DecodedResponse<ConnectUnaryDecoder>)
    for type in [StreamType.clientStream, .serverStream, .bidirectionalStream] {
      let stream = self.wire.makeDecoder(
        contentType: "a",
        streamType: type,
        maximumMessageSize: 1,
        maximumMetadataSize: 1,
        acceptedEncodings: .none,
        buffers: nil
      )
      XCTAssertTrue(stream is DecodedResponse<ConnectStreamDecoder>)
    }
  }
}
