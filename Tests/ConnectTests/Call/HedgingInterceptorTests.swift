import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Hedging below interceptors: they see the attempt that wins, and may retry the call as a whole.
final class HedgingInterceptorTests: XCTestCase {
  func testHooksSeeTheWinnerAlone() async {
    let probe = InterceptorProbe()
    let call = HedgedCall(interceptors: [probe.factory("A")])
    call.attempt(1) { $0.reply(.unavailable) }
    call.advance(by: .seconds(1))
    call.attempt(3) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(
      probe.events.outline,
      ["A message request", "A byte request", "A byte response ok", "A message response ok"]
    )
    XCTAssertEqual(call.cancelled, [2])
  }

  func testMetricsOfEachAttempt() async {
    let metrics = Box<[HTTPMetrics]>([])
    let measuring = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseMetricsFunction = { value, proceed in
        metrics.value = metrics.value + [value]
        proceed(value)
      }
    }
    let call = HedgedCall(interceptors: [measuring])
    call.advance(by: .milliseconds(500))
    call.attempt(1) { $0.reply(.unavailable, status: 503) }
    call.advance(by: .seconds(1))
    call.attempt(3) { $0.reply("\"x\"") }
    _ = await call.outcome()
    XCTAssertEqual(metrics.value.map(\.attempt), [1, 3, 2])
    XCTAssertEqual(metrics.value.map(\.httpStatus), [503, 200, nil])
    XCTAssertEqual(metrics.value.map(\.duration), [.milliseconds(500), .zero, .seconds(1)])
    XCTAssertEqual(metrics.value.map(\.requestBodyBytes), [3, 3, 3])
  }

  // MARK: Retries

  private static func retrying(_ limit: Int = .max) -> InterceptorFactory {
    { _ in
      var count = 0
      var interceptor = TestInterceptor()
      interceptor.unaryBytes.responseFunction = { response, proceed in
        guard response.error != nil, count < limit else { return proceed(response) }
        count += 1
        proceed.retry()
      }
      return interceptor
    }
  }

  /// Retries do not give a call more hedges, nor do hedges take its retries.
  func testRetriesAndHedgesAreCountedApart() async {
    let call = HedgedCall(interceptors: [Self.retrying()]) { $0.retries.maximumRetries = 2 }
    for count in [2, 3] {
      call.advance(by: .seconds(1))
      XCTAssertEqual(call.attempts.count, count)
    }
    call.attempt(2) { $0.reply(.aborted) }
    XCTAssertEqual(call.attempts.count, 4, "the first retry")
    XCTAssertEqual(call.cancelled, [1, 3])
    call.advance(by: .seconds(100))
    XCTAssertEqual(call.attempts.count, 4)
    call.attempt(4) { $0.reply(.unavailable) }
    XCTAssertEqual(call.attempts.count, 5, "the second retry")
    call.attempt(5) { $0.reply(.unavailable, "last") }
    let response = await call.outcome()
    XCTAssertEqual(response.error?.message, "last")
  }

  func testHedgesThatAreLeftAreUsedAfterARetry() async {
    let call = HedgedCall(interceptors: [Self.retrying(1)])
    call.attempt(1) { $0.reply(.aborted) }
    XCTAssertEqual(call.attempts.count, 2)
    call.advance(by: .seconds(2))
    XCTAssertEqual(call.attempts.count, 4)
    XCTAssertEqual(
      call.attempts.map { $0.request.headers["grpc-previous-rpc-attempts"] },
      [[], [], ["2"], ["3"]]
    )
    call.attempt(4) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.cancelled, [2, 3])
  }

  func testCallingNextAgainGivesUpAllAttempts() async {
    let isImpatient = Signal<Void>()
    let isCalledAgain = Signal<Void>()
    let impatient = TestAsyncInterceptor.unary { request, next in
      let pending = Task { try await next(request) }
      await isImpatient.wait()
      pending.cancel()
      _ = await pending.result
      async let response = next(request)
      isCalledAgain.fire()
      return try await response
    }
    let started = Signal<Void>()
    let call = HedgedCall(interceptors: [impatient], script: { _ in started.fire() })
    await started.wait()
    call.advance(by: .seconds(1))
    await started.wait()
    XCTAssertEqual(call.attempts.count, 2)
    isImpatient.fire()
    await isCalledAgain.wait()
    await started.wait()
    XCTAssertEqual(call.cancelled, [1, 2])
    XCTAssertEqual(call.attempts.count, 3)
    call.attempt(3) { $0.reply("\"x\"") }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.attempts.count, 3)
  }

  // MARK: Other answers

  /// 304 is an answer, whatever its code is as an error.
  func testNotModifiedWins() async {
    let conditional = TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(
        requestFunction: { request, proceed in
          var request = request
          request.headers["If-None-Match"] = ["\"tag\""]
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          XCTAssertNil(response.error)
          XCTAssertEqual(response.httpStatus, 304)
          var response = response
          response.message = ByteBuffer(string: "\"cached\"")
          proceed(response)
        }
      )
    }
    let policy = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), codes: [.unknown])
    let call = HedgedCall(policy, interceptors: [conditional])
    call.advance(by: .seconds(1))
    call.attempt(2) {
      $0.respond(status: 304, headers: Headers())
      $0.end()
    }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "cached")
    XCTAssertEqual(call.cancelled, [1])
  }

  /// A hook answers: nothing is sent, and nothing is hedged.
  func testAnAnswerOfAHook() async {
    let answering = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.requestFunction = { _, proceed in
        proceed.answer(HTTPResponse(message: ByteBuffer(string: "\"own\"")))
      }
    }
    let call = HedgedCall(interceptors: [answering])
    let response = await call.outcome()
    XCTAssertEqual(response.message, "own")
    XCTAssertEqual(call.attempts.count, 0)
  }

  func testAMetricsHookMayCancelTheCall() async {
    let handle = Box<CallHandle?>(nil)
    let cancelling = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
        handle.value?.cancel()
        proceed(metrics)
      }
    }
    let call = HedgedCall(interceptors: [cancelling])
    handle.value = call.handle
    call.advance(by: .seconds(1))
    call.attempt(1) { $0.reply(.unavailable) }
    let response = await call.outcome()
    XCTAssertEqual(response.code, .canceled)
    XCTAssertEqual(call.cancelled, [2])
  }
}
