import Connect
import ConnectInterceptors
import ConnectTesting
import ServiceContextModule
import XCTest

final class CallContextHeadersTests: XCTestCase {
  private let executor = VirtualExecutor()

  private func remaining(_ headers: Headers) -> Duration? {
    var context = CallContext()
    context.read(requestHeaders: headers, clock: self.executor.clock)
    return context.deadline?.remaining
  }

  func testTimeLimits() {
    XCTAssertNil(self.remaining([:]))
    XCTAssertEqual(self.remaining(["Connect-Timeout-Ms": ["1500"]]), .milliseconds(1500))
    XCTAssertEqual(self.remaining(["connect-timeout-ms": ["9999999999"]]), .milliseconds(9_999_999_999))
    for (text, duration) in [
      ("2H", Duration.seconds(7200)), ("3M", .seconds(180)), ("4S", .seconds(4)), ("5m", .milliseconds(5)),
      ("6u", .microseconds(6)), ("7n", .nanoseconds(7)), ("0S", .zero),
      // More than 100 years count as 100 years.
      ("876000H", .seconds(3_153_600_000)), ("99999999H", .seconds(3_153_600_000)),
    ] {
      XCTAssertEqual(self.remaining(["grpc-timeout": [text]]), duration, text)
    }
  }

  func testWhatIsNoTimeLimitIsNone() {
    for text in ["", "-1", "+1", "1.5", "1e3", " 1", "12345678901", "1s"] {
      XCTAssertNil(self.remaining(["connect-timeout-ms": [text]]), text)
    }
    for text in ["", "S", "1", "1s", "-1S", "123456789S", "1é", "１S"] {
      XCTAssertNil(self.remaining(["grpc-timeout": [text]]), text)
    }
  }

  func testTheEarlierDeadlineCounts() {
    var context = CallContext()
    context.deadline = CallDeadline(in: .seconds(2), clock: self.executor.clock)
    context.read(requestHeaders: ["grpc-timeout": ["3S"]], clock: self.executor.clock)
    XCTAssertEqual(context.deadline?.remaining, .seconds(2))
    context.read(requestHeaders: ["grpc-timeout": ["1S"]], clock: self.executor.clock)
    XCTAssertEqual(context.deadline?.remaining, .seconds(1))
  }

  func testRequestIDAndBaggage() {
    var context = CallContext()
    context.read(requestHeaders: ["x-request-id": ["r1"], "baggage": ["tenant=acme"]])
    XCTAssertEqual(context.requestID, "r1")
    XCTAssertEqual(context.baggage["tenant"], "acme")
    context.read(requestHeaders: ["x-trace": ["r2"]], requestIDHeader: "x-trace")
    XCTAssertEqual(context.requestID, "r2")
    XCTAssertEqual(context.baggage["tenant"], "acme")
  }

  func testTheServiceContextGoesAlong() {
    let propagator = ServiceContextPropagator()
    var context = CallContext()
    propagator.capture(into: &context)
    XCTAssertNil(context.serviceContext)

    var current = ServiceContext.topLevel
    current[NumberKey.self] = 1
    ServiceContext.withValue(current) { propagator.capture(into: &context) }
    XCTAssertEqual(context.serviceContext?[NumberKey.self], 1)
    // What was given with the call goes first.
    current[NumberKey.self] = 2
    ServiceContext.withValue(current) { propagator.capture(into: &context) }
    XCTAssertEqual(context.serviceContext?[NumberKey.self], 1)

    var seen: [Int?] = []
    propagator.bind(context) { seen.append(ServiceContext.current?[NumberKey.self]) }
    ServiceContext.withValue(current) {
      propagator.bind(CallContext()) { seen.append(ServiceContext.current?[NumberKey.self]) }
    }
    XCTAssertEqual(seen, [1, nil])
    XCTAssertNil(ServiceContext.current)
  }
}

private enum NumberKey: ServiceContextKey {
  typealias Value = Int
}
