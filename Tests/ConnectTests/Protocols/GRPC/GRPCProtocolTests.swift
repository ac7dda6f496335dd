import NIOCore
import TestSupport
import XCTest

@testable import Connect

final class GRPCProtocolTests: XCTestCase {
  private let wire = GRPCProtocol()

  private func headers(_ headers: Headers = [:], timeout: Duration? = nil, encoding: String? = nil) -> Headers
  {
    self.wire.requestHeaders(
      headers,
      for: WireRequest(
        contentType: "application/grpc+proto",
        streamType: .unary,
        timeout: timeout,
        encoding: encoding,
        acceptedEncodings: AcceptedEncodings([GzipCompressionPool(), DeflateCompressionPool()])
      )
    )
  }

  func testRequestHeaders() {
    XCTAssertEqual(
      self.headers(["x-a": ["1"], "y-bin": ["AAEC"]], timeout: .seconds(1), encoding: "gzip"),
      [
        "x-a": ["1"], "y-bin": ["AAEC"], "te": ["trailers"], "content-type": ["application/grpc+proto"],
        "grpc-encoding": ["gzip"], "grpc-accept-encoding": ["gzip,deflate"], "grpc-timeout": ["1000000u"],
        "user-agent": ["grpc-swift-connect-linux/0.1.0"],
      ]
    )
    XCTAssertEqual(self.headers(["User-Agent": ["me"]])["user-agent"], ["me"])
    XCTAssertFalse(self.headers().contains("grpc-encoding"))
  }

  func testNames() {
    XCTAssertTrue(self.wire.requiresHTTP2)
    XCTAssertEqual(self.wire.contentType(codecName: "json", isUnary: true), "application/grpc+json")
    // Some front ends know only this form.
    XCTAssertEqual(self.wire.contentType(codecName: "proto", isUnary: true), "application/grpc")
    XCTAssertEqual(self.wire.contentType(codecName: "proto", isUnary: false), "application/grpc")
    for name in ["grpc-timeout", "grpc-anything", "content-type", "content-encoding", "accept-encoding"] {
      XCTAssertTrue(self.wire.owns(headerName: name), name)
    }
    for name in ["x-grpc", "grpc", "authorization", "accept"] {
      XCTAssertFalse(self.wire.owns(headerName: name), name)
    }
    XCTAssertEqual(
      "\(NetworkProtocol.grpc) \(NetworkProtocol.grpcWeb) \(NetworkProtocol.grpcWebText)",
      "grpc grpc-web grpc-web-text"
    )
  }

  func testTimeouts() {
    let cases: [(Duration, String)] = [
      (.nanoseconds(1), "1n"), (.nanoseconds(99_999_999), "99999999n"),
      (.nanoseconds(100_000_000), "100000u"),
      (.nanoseconds(100_000_001), "100001u"), (.seconds(99), "99000000u"), (.seconds(100), "100000m"),
      (.seconds(100) + .nanoseconds(1), "100001m"), (.seconds(99_999), "99999000m"),
      (.seconds(100_000), "100000S"), (.seconds(99_999_999), "99999999S"),
      (.seconds(100_000_000), "1666667M"),
      (.seconds(99_999_999 * 60), "99999999M"), (.seconds(99_999_999 * 60 + 1), "1666667H"),
      (.seconds(99_999_999 * 3600), "99999999H"), (.seconds(Int64.max), "99999999H"),
      (Duration(secondsComponent: 0, attosecondsComponent: 1), "1n"), (.zero, "1n"), (.seconds(-5), "1n"),
    ]
    for (timeout, text) in cases {
      XCTAssertEqual(GRPCTimeout.encode(timeout), text, "\(timeout)")
    }
  }

  func testTimeoutsAreNeverShorter() {
    var random = SeededGenerator()
    let units: [Character: Duration] = [
      "n": .nanoseconds(1), "u": .microseconds(1), "m": .milliseconds(1), "S": .seconds(1), "M": .seconds(60),
      "H": .seconds(3600),
    ]
    for _ in 0..<2000 {
      let timeout = Duration(
        secondsComponent: Int64.random(
          in: 0...(1 << Int64.random(in: 0..<38, using: &random)),
          using: &random
        ),
        attosecondsComponent: Int64.random(in: 0..<1_000_000_000_000_000_000, using: &random)
      )
      let text = GRPCTimeout.encode(timeout)
      XCTAssertLessThanOrEqual(text.count, 9)
      guard let unit = text.last.flatMap({ units[$0] }), let value = Int(text.dropLast()) else {
        XCTFail(text)
        continue
      }
      XCTAssertGreaterThanOrEqual(unit * value, timeout)
      XCTAssertLessThan(unit * (value - 1), timeout)
    }
  }
}
