import Connect
import ConnectTesting
import NIOCore
import XCTest

/// DESIGN.md, "Retry", for unary calls with closure hooks.
final class RetryTests: XCTestCase {
  private static let failing: ScriptedTransport.Script = { $0.reply(.unavailable) }
  private static let fine: ScriptedTransport.Script = { $0.reply($0.sentMessage) }

  /// Retries on an error, at one level, so often.
  private static func retrying(
    _ limit: Int = .max,
    bytes: Bool = false,
    after delay: Duration = .zero,
    refused: Events? = nil
  ) -> InterceptorFactory {
    { _ in
      var count = 0
      var interceptor = TestInterceptor()
      if bytes {
        interceptor.unaryBytes.responseFunction = { response, proceed in
          guard response.error != nil, count < limit else {
            proceed(response)
            return
          }
          count += 1
          proceed.retry(after: delay)
        }
      } else {
        interceptor.unaryMessages.responseFunction = { response, proceed in
          guard response.error != nil, count < limit else {
            proceed(response)
            return
          }
          count += 1
          proceed.retry(after: delay)
        }
      }
      return interceptor
    }
  }

  func testRetryFromAMessageHookEncodesAgainAndFromAByteHookDoesNot() async {
    for (bytes, encodes) in [(false, 2), (true, 1)] {
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let codec = CountingCodec()
      let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying(bytes: bytes)]) {
        $0.codec = codec
      }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(codec.encodes, encodes)
      XCTAssertEqual(transport.streams.map(\.sentMessage), ["\"x\"", "\"x\""])
    }
  }

  func testRetryStartsAtTheFirstHookOfItsLevelWithTheCallersRequest() async {
    let events = Events()
    let transport = ScriptedTransport.replying([Self.failing, Self.fine])
    let adding: InterceptorFactory = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.requestFunction = { request, proceed in
        events.add("adds to \(request.message.text)")
        var request = request
        request.message = Text(request.message.text + "+")
        proceed(.success(request))
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [adding, Self.retrying()])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x+")
    XCTAssertEqual(events.all, ["adds to x", "adds to x"])
  }

  func testRetryWithAnotherRequest() async {
    let transport = ScriptedTransport.replying([Self.failing, Self.fine])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        { _ in
          var given: HTTPRequest<Text>?
          var interceptor = TestInterceptor()
          interceptor.unaryMessages = UnaryMessageFunction(
            requestFunction: { request, proceed in
              given = request
              proceed(.success(request))
            },
            responseFunction: { response, proceed in
              guard response.error != nil, var request = given else {
                proceed(response)
                return
              }
              request.message = "other"
              proceed.retry(request)
            }
          )
          return interceptor
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "other")
  }

  func testOuterHooksDoNotSeeARetriedAttempt() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport.replying([Self.failing, Self.failing, Self.fine])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A"), Self.retrying(1), Self.retrying(1, bytes: true),
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(
      probe.events.outline,
      [
        "A message request", "A byte request",
        "A byte request", "A byte response unavailable",
        "A message request", "A byte request",
        "A byte response ok", "A message response ok",
      ]
    )
  }

  func testTheCapIsSharedByAllAndTheLastErrorIsReported() async {
    let count = Box(0)
    let transport = ScriptedTransport { stream in
      stream.reply(.unavailable, "attempt \(count.increment())")
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [Self.retrying(), Self.retrying(1, bytes: true), Self.retrying(1)]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(transport.streams.count, 4)
    XCTAssertEqual(response.error?.code, .unavailable)
    XCTAssertEqual(response.error?.message, "attempt 4")
  }

  func testTheCapCanBeSet() async {
    for maximum in [0, 1, 7] {
      let transport = ScriptedTransport(Self.failing)
      let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying()]) {
        $0.retries.maximumRetries = maximum
      }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertEqual(transport.streams.count, maximum + 1)
    }
  }

  func testDelay() async {
    for bytes in [false, true] {
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [Self.retrying(bytes: bytes, after: .seconds(2))],
        timeout: .seconds(10)
      )
      let outcome = client.outcome(of: "x").outcome
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .milliseconds(1999))
      XCTAssertEqual(transport.streams.count, 1)
      transport.virtualExecutor.advance(by: .milliseconds(1))
      XCTAssertEqual(transport.streams.count, 2)
      XCTAssertEqual(
        transport.streams.map { $0.request.headers["connect-timeout-ms"] },
        [["10000"], ["8000"]]
      )
      let response = await outcome.wait()
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(transport.virtualExecutor.scheduled, [])
    }
  }

  func testADelayPastTheDeadlineIsRefusedAtOnce() async {
    let transport = ScriptedTransport(Self.failing)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [Self.retrying(after: .seconds(10))],
      timeout: .seconds(10)
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(transport.streams.count, 1)
  }

  func testALateProceedOfAnOlderAttemptIsIgnored() async {
    for bytes in [false, true] {
      let transport = ScriptedTransport.replying([Self.failing, Self.fine])
      let kept = Box<UnaryHooks<Text, ResponseMessage<Text>>.ResponseProceed?>(nil)
      let keptRequest = Box<UnaryHooks<Text, ResponseMessage<Text>>.RequestProceed?>(nil)
      let response = await ProtocolClient.scripted(
        transport,
        interceptors: [
          TestInterceptor.make { interceptor in
            interceptor.unaryMessages = UnaryMessageFunction(
              requestFunction: { request, proceed in
                let earlier = keptRequest.exchange(proceed)
                proceed(.success(request))
                earlier?(.failure(ConnectError(code: .dataLoss)))
              },
              responseFunction: { response, proceed in
                if let earlier = kept.exchange(proceed) {
                  earlier(ResponseMessage(error: ConnectError(code: .dataLoss)))
                  earlier.retry()
                }
                if response.error == nil || bytes { proceed(response) } else { proceed.retry() }
              }
            )
          },
          bytes ? Self.retrying(bytes: true) : TestInterceptor.make { _ in },
        ]
      ).unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(transport.streams.count, 2)
    }
  }

  func testRetryOfAnAnswerOfAHookInside() async {
    let count = Box(0)
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        Self.retrying(),
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.requestFunction = { request, proceed in
            if count.increment() == 1 {
              proceed(.failure(ConnectError(code: .unavailable)))
            } else {
              proceed(.success(request))
            }
          }
        },
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(transport.streams.count, 1)
  }
}
