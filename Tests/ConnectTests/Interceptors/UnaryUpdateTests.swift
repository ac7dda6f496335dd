import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The synchronous form of hooks of unary calls.
final class UnaryUpdateTests: XCTestCase {
  private static let levels = ["bytes", "messages"]

  /// An interceptor that logs what passes, and does more.
  private func updating(
    _ name: String,
    _ level: String,
    _ events: Events,
    request: @escaping @Sendable (inout Headers) throws -> Void = { _ in },
    response: @escaping @Sendable (ConnectError?) -> ResponseDecision = { _ in .proceed }
  ) -> InterceptorFactory {
    @Sendable func hooks<Message, Response: Outcome>() -> UnaryHooks<Message, Response> {
      UnaryHooks(
        updateRequest: {
          events.add("\(name) >")
          try request(&$0.headers)
        },
        updateResponse: {
          events.add("\(name) < \($0.code)")
          $0.headers["x-\(name)"] = ["seen"]
          return response($0.error)
        }
      )
    }
    return TestInterceptor.make { interceptor in
      if level == "bytes" { interceptor.unaryBytes = hooks() } else { interceptor.unaryMessages = hooks() }
    }
  }

  /// One that proceeds, at the same level.
  private func proceeding(_ name: String, _ level: String, _ events: Events) -> InterceptorFactory {
    @Sendable func hooks<Message, Response: Outcome>() -> UnaryHooks<Message, Response> {
      UnaryHooks(
        requestFunction: { request, proceed in
          events.add("\(name) >")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          events.add("\(name) < \(response.code)")
          proceed(response)
        }
      )
    }
    return TestInterceptor.make { interceptor in
      if level == "bytes" { interceptor.unaryBytes = hooks() } else { interceptor.unaryMessages = hooks() }
    }
  }

  func testTheyStandInOneChainWithOthers() async {
    for level in Self.levels {
      let events = Events()
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          self.updating("A", level, events, request: { $0["x-a"] = ["1"] }),
          self.proceeding("B", level, events), self.updating("C", level, events),
        ]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(events.all, ["A >", "B >", "C >", "C < ok", "B < ok", "A < ok"])
      XCTAssertEqual(transport.streams.first?.request.headers["x-a"], ["1"])
      XCTAssertEqual(response.headers["x-a"], ["seen"])
    }
  }

  func testWhatTheyThrowGoesUpOutside() async {
    struct Failure: Error {}
    for level in Self.levels {
      let events = Events()
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          self.updating("A", level, events),
          self.updating("B", level, events, request: { _ in throw Failure() }),
          self.updating("C", level, events),
        ]
      )
      let error = await client.unary(.unary, "x").error
      XCTAssertTrue(error?.exception is Failure)
      XCTAssertEqual(error?.isUnsent, true)
      XCTAssertEqual(events.all, ["A >", "B >", "A < unknown"])
      XCTAssertTrue(transport.streams.isEmpty)
    }
  }

  func testRetries() async {
    for level in Self.levels {
      let events = Events()
      let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"ok\"") }])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          self.updating("A", level, events),
          self.updating("B", level, events, response: { $0 == nil ? .proceed : .retry(after: .seconds(1)) }),
        ]
      )
      let ended = Events()
      client.unary(.unary, "x") { ended.add($0.message?.text ?? "\($0.code)") }
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(transport.streams.count, 1)
      transport.virtualExecutor.advance(by: .seconds(1))
      XCTAssertEqual(ended.all, ["ok"])
      XCTAssertEqual(events.all, ["A >", "B >", "B < unavailable", "A >", "B >", "B < ok", "A < ok"])
    }
  }

  func testARetryThatIsRefusedPassesTheResponseOn() async {
    for level in Self.levels {
      let events = Events()
      let transport = ScriptedTransport { $0.reply(.unavailable) }
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          self.updating("A", level, events),
          self.updating("B", level, events, response: { _ in .retry(after: .zero) }),
        ]
      ) {
        $0.retries.maximumRetries = 2
      }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.error?.code, .unavailable)
      XCTAssertEqual(transport.streams.count, 3)
      XCTAssertEqual(events.all.filter { $0.hasPrefix("A <") }, ["A < unavailable"])
      // What the hook has changed before it asked for a retry is not passed on, as with one that proceeds.
      XCTAssertEqual(response.headers["x-B"], [])
      XCTAssertEqual(response.headers["x-A"], ["seen"])
    }
  }

  func testTheyAreToldOfTheDeadline() {
    for level in Self.levels {
      let events = Events()
      let transport = ScriptedTransport.silent()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [self.updating("A", level, events, response: { _ in .retry(after: .zero) })],
        timeout: .seconds(1)
      )
      let ended = Events()
      client.unary(.unary, "x") { ended.add($0.message?.text ?? "\($0.code)") }
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(1))
      XCTAssertEqual(ended.all, ["deadline_exceeded"])
      XCTAssertEqual(events.all, ["A >", "A < deadline_exceeded"])
      XCTAssertEqual(transport.streams.count, 1)
    }
  }

  func testAHookThatCancelsTheCallEndsItOnce() {
    for level in Self.levels {
      for isAtEnd in [false, true] {
        let cancellation = CallCancellation()
        let events = Events()
        let transport = ScriptedTransport.echo()
        let client = ProtocolClient.scripted(
          transport,
          interceptors: [
            self.updating("A", level, events),
            self.updating(
              "B",
              level,
              events,
              request: { _ in if !isAtEnd { cancellation.cancel() } },
              response: { _ in
                cancellation.cancel()
                return .proceed
              }
            ),
          ]
        )
        var options = CallOptions()
        options.context.cancellation = cancellation
        let ended = Events()
        client.unary(.unary, "x", options: options) { ended.add("\($0.code)") }
        transport.virtualExecutor.runUntilIdle()
        XCTAssertEqual(ended.all, ["canceled"])
        XCTAssertEqual(
          events.all,
          isAtEnd ? ["A >", "B >", "B < ok", "A < canceled"] : ["A >", "B >", "A < canceled"]
        )
        XCTAssertEqual(transport.streams.count, isAtEnd ? 1 : 0)
      }
    }
  }

  func testTheyCanBeDrivenAndReplacedLikeOthers() async throws {
    var hooks = UnaryFunction(
      updateRequest: { $0.headers["x-a"] = ["1"] },
      updateResponse: { $0.error == nil ? .proceed : .retry(after: .seconds(2)) }
    )
    let driver = InterceptorDriver { [hooks = UncheckedBox(hooks)] _ in
      var interceptor = TestInterceptor()
      interceptor.unaryBytes = hooks.value
      return interceptor
    }
    let request = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(request.request?.headers["x-a"], ["1"])
    let verb = try await driver.unary.response(HTTPResponse(error: ConnectError(code: .aborted))).outcome
    XCTAssertEqual(verb.retryDelay, .seconds(2))
    hooks.requestFunction = nil
    hooks.responseFunction = nil
    XCTAssertNil(hooks.requestFunction)
    XCTAssertNil(hooks.responseFunction)
  }

  private struct UncheckedBox: @unchecked Sendable {
    let value: UnaryFunction
    init(_ value: UnaryFunction) { self.value = value }
  }
}

/// What responses of both levels have in common.
private protocol Outcome: Sendable {
  var code: Code { get }
  var headers: Headers { get set }
  var error: ConnectError? { get }
}

extension HTTPResponse: Outcome {}
extension ResponseMessage: Outcome {}
