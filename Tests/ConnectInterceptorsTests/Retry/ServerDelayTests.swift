import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import NIOCore
import XCTest

/// When the server says when.
final class ServerDelayTests: XCTestCase {
  /// How long a call waited for its second attempt; nil if it made none. The backoff adds nothing.
  private func wait(
    after error: ConnectError,
    _ networkProtocol: NetworkProtocol = .connect,
    longest: Duration = .seconds(60),
    backoff: Backoff = Backoff(base: .zero)
  ) async throws -> Duration? {
    let server = ScriptedServer(failing: error)
    let budget = RetryBudget()
    let policy = RetryPolicy(backoff: backoff, longestServerDelay: longest)
    let client = server.client(
      over: networkProtocol,
      { _ in RetryInterceptor(policy: policy, budget: budget) }
    )
    let response = try await server.call(client)
    XCTAssertEqual(response.code, server.attempts.count == 1 ? .unavailable : .ok)
    return server.attempts.count == 1 ? nil : server.attempts[1].time
  }

  func testPushback() async throws {
    for (value, expected) in [
      ("0", Duration.zero), ("1500", .milliseconds(1500)), ("-1", nil), ("soon", nil), ("", nil),
      ("99999999999999999999", nil), ("60001", nil), ("60000", .seconds(60)),
    ] {
      for networkProtocol in [NetworkProtocol.connect, .grpc] {
        // Whatever the backoff.
        let waited = try await self.wait(
          after: .away(["grpc-retry-pushback-ms": [value]]),
          networkProtocol,
          backoff: Backoff(base: .seconds(100), maximum: .seconds(100))
        )
        XCTAssertEqual(waited, expected, "\(value) over \(networkProtocol)")
      }
    }
  }

  func testPushbackStopsAlsoWhereBackoffIsLeft() async throws {
    let server = ScriptedServer(failing: .away, .away(["grpc-retry-pushback-ms": ["-1"]]))
    let budget = RetryBudget()
    let response = try await server.call(server.client({ _ in RetryInterceptor(budget: budget) }))
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(server.attempts.count, 2)
  }

  func testBackoffBeginsAnewAfterPushback() async throws {
    let pushback = ConnectError.away(["grpc-retry-pushback-ms": ["0"]])
    let server = ScriptedServer(failing: pushback, pushback, pushback, .away)
    let budget = RetryBudget(maximumTokens: 100)
    let backoff = Backoff(base: .milliseconds(1), multiplier: 1000, maximum: .seconds(1000))
    let policy = RetryPolicy(maximumAttempts: 5, backoff: backoff)
    let response = try await server.call(
      server.client({ _ in RetryInterceptor(policy: policy, budget: budget) })
    )
    XCTAssertEqual(response.code, .ok)
    XCTAssertLessThanOrEqual(server.executor.now, .milliseconds(1))
  }

  func testRetryInfo() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc] {
      let waited = try await self.wait(after: .away(retryInfo: 2, nanos: 500_000_000), networkProtocol)
      XCTAssertEqual(waited, .milliseconds(2500), "\(networkProtocol)")
    }
    let past = try await self.wait(after: .away(retryInfo: -2))
    XCTAssertEqual(past, .zero)
    let tooLong = try await self.wait(after: .away(retryInfo: 3600))
    XCTAssertNil(tooLong)
  }

  func testRetryInfoThatCannotBeReadIsNone() async throws {
    for bytes: [UInt8] in [[0x0a], [0x0a, 0x05, 0x08], [0x0a, 0x02, 0xff, 0xff], [0x0b], [0xff], []] {
      var error = ConnectError.away
      error.details = [.init(type: "google.rpc.RetryInfo", value: .init(bytes: bytes))]
      let waited = try await self.wait(after: error)
      XCTAssertEqual(waited, .zero, "\(bytes)")
    }
    // Fields that are not known are passed over.
    var error = ConnectError.away
    let bytes: [UInt8] = [0x10, 0x80, 0x01, 0x1a, 0x01, 0x00, 0x25, 0, 0, 0, 0, 0x29, 0, 0, 0, 0, 0, 0, 0, 0]
    error.details = [
      .init(type: "google.rpc.RetryInfo", value: .init(bytes: bytes + [0x0a, 0x02, 0x08, 0x03]))
    ]
    let waited = try await self.wait(after: error)
    XCTAssertEqual(waited, .seconds(3))
  }

  func testRetryAfterInSeconds() async throws {
    for (value, expected) in [
      ("0", Duration.zero), ("7", .seconds(7)), ("61", nil), ("99999999999999999999", nil),
      ("-1", .zero), ("soon", .zero), ("", .zero), ("1.5", .zero),
    ] {
      let waited = try await self.wait(after: .away(["retry-after": [value]]))
      XCTAssertEqual(waited, expected, value)
    }
  }

  func testRetryAfterAsADate() async throws {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    for (value, expected) in [
      ("Sun, 06 Nov 1994 08:49:41 GMT", Duration.seconds(4)),
      ("Sunday, 06-Nov-94 08:49:42 GMT", .seconds(5)),
      ("Sun Nov  6 08:49:43 1994", .seconds(6)),
      ("Sun, 06 Nov 1994 08:49:30 GMT", .zero),
      ("Mon, 07 Nov 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov 1994 24:49:41 GMT", .zero), ("Sun, 06 Foo 1994 08:49:41 GMT", .zero),
      ("Sun, 06 Nov 1994 08:49 GMT", .zero),
    ] {
      let waited = try await self.wait(after: .away(["retry-after": [value], "date": [date]]))
      XCTAssertEqual(waited, expected, value)
    }
    let leapYear = try await self.wait(
      after: .away([
        "retry-after": ["Fri, 01 Mar 2024 00:00:05 GMT"], "date": ["Thu, 29 Feb 2024 23:59:50 GMT"],
      ])
    )
    XCTAssertEqual(leapYear, .seconds(15))
  }

  func testRetryAfterAsADateWithoutTheServersTime() async throws {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    let date = formatter.string(from: Date(timeIntervalSinceNow: 1790))
    let waited = try await self.wait(after: .away(["retry-after": [date]]), longest: .seconds(1800))
    let wait = try XCTUnwrap(waited)
    XCTAssertTrue(wait > .seconds(1700) && wait <= .seconds(1800), "\(wait)")
  }

  func testWhichOneCounts() async throws {
    var error = try ConnectError.away(retryInfo: 2)
    error.metadata = ["retry-after": ["3"]]
    let info = try await self.wait(after: error)
    XCTAssertEqual(info, .seconds(2))
    error.metadata["grpc-retry-pushback-ms"] = ["4000"]
    let pushback = try await self.wait(after: error)
    XCTAssertEqual(pushback, .seconds(4))
  }

  func testTheBackoffComesOnTop() async throws {
    let backoff = Backoff(base: .seconds(10), maximum: .seconds(10))
    let waited = try await self.wait(after: .away(["retry-after": ["30"]]), backoff: backoff)
    let wait = try XCTUnwrap(waited)
    XCTAssertTrue(wait >= .seconds(30) && wait <= .seconds(40), "\(wait)")
  }
}
