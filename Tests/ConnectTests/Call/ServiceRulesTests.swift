import Connect
import ConnectTesting
import NIOCore
import XCTest

/// What a service's rules do to its calls. How calls wait for them is in ``ServiceRulesWaitTests``.
final class ServiceRulesTests: XCTestCase {
  private static func transport(
    _ rules: MethodRules,
    _ script: @escaping ScriptedTransport.Script = { _ in }
  ) -> ScriptedTransport {
    let transport = ScriptedTransport(script)
    transport.serviceRules.update { _ in rules }
    return transport
  }

  // MARK: Time

  func testTheShorterTimeoutCounts() async {
    for (own, expected, isTheRules) in [(nil, 5, true), (10, 5, true), (5, 5, false), (3, 3, false)]
      as [(Int?, Int, Bool)]
    {
      let transport = Self.transport(MethodRules(timeout: .seconds(5)))
      let client = ProtocolClient.scripted(transport, timeout: own.map { .seconds($0) })
      let outcome = client.outcome(of: "x").outcome
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(
        transport.streams.map { $0.request.headers["connect-timeout-ms"] },
        [["\(expected)000"]]
      )
      transport.virtualExecutor.advance(by: .seconds(expected) - .milliseconds(1))
      XCTAssertEqual(outcome.count, 0)
      transport.virtualExecutor.advance(by: .milliseconds(1))
      let response = await outcome.wait()
      XCTAssertEqual(response.code, .deadlineExceeded)
      let source = isTheRules ? " (the timeout of the service config)" : ""
      XCTAssertEqual(
        response.error?.message,
        "/test.Text/Unary did not complete within \(expected).0 seconds\(source)"
      )
      XCTAssertEqual(transport.virtualExecutor.scheduled, [])
    }
  }

  /// A transport around another one does not hide the rules.
  func testRulesOfAnUnderlyingEndpoint() async {
    let transport = Self.transport(MethodRules(timeout: .seconds(5)))
    let client = ProtocolClient(
      httpClient: WrappingTransport(base: transport),
      config: ProtocolClientConfig(host: "http://scripted.test", codec: JSONCodec())
    )
    client.unary(.unary, "x") { _ in }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.map { $0.request.headers["connect-timeout-ms"] }, [["5000"]])
  }

  private struct WrappingTransport: HTTPClientInterface {
    let base: ScriptedTransport

    func endpoint(
      for origin: Origin,
      on executor: (any CallExecutor)?,
      requiresHTTP2: Bool
    ) throws(ConnectError) -> any HTTPEndpoint {
      Endpoint(base: try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2))
    }

    private final class Endpoint: HTTPEndpoint {
      let base: any HTTPEndpoint

      init(base: any HTTPEndpoint) {
        self.base = base
      }

      var executor: any CallExecutor { self.base.executor }
      var underlying: (any HTTPEndpoint)? { self.base }

      func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
        self.base.startStream(request, handler: handler)
      }
    }
  }

  func testATimeoutOfZeroOrLess() async {
    for timeout in [Duration.zero, .seconds(-1), .seconds(Int64.min)] {
      let transport = Self.transport(MethodRules(timeout: timeout))
      let outcome = ProtocolClient.scripted(transport).outcome(of: "x").outcome
      let response = await outcome.wait()
      XCTAssertEqual(response.code, .deadlineExceeded)
      XCTAssertEqual(transport.streams.count, 0)
    }
  }

  /// What hooks hand on to the calls that they make.
  func testHooksSeeTheTimeout() async {
    let seen = Box<[Duration?]>([])
    let looking = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.requestFunction = { request, proceed in
        seen.value = [request.timeout, request.context.deadline?.remaining]
        proceed(.success(request))
      }
    }
    let transport = Self.transport(MethodRules(timeout: .seconds(5))) { $0.reply("\"x\"") }
    let client = ProtocolClient.scripted(transport, interceptors: [looking])
    var options = CallOptions()
    options.context.deadline = CallDeadline(in: .seconds(60), clock: transport.virtualExecutor.clock)
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(seen.value, [.seconds(5), .seconds(5)])
  }

  /// What is sent again in another protocol belongs to the same call.
  func testOtherProtocolsHaveTheSameRules() async {
    let transport = Self.transport(MethodRules(timeout: .seconds(5), waitForReady: true)) { stream in
      guard stream.request.headers.first("grpc-timeout") != nil else { return stream.reply("\"x\"") }
      stream.fail(ConnectError(code: .unavailable), isVersionMismatch: true)
    }
    let client = ProtocolClient.scripted(transport) { $0.networkProtocol = .automatic([.grpc, .connect]) }
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(transport.streams.count, 2)
    XCTAssertEqual(transport.streams.last?.request.headers["connect-timeout-ms"], ["5000"])
    XCTAssertEqual(transport.streams.map(\.request.waitsForReady), [true, true])
  }

  // MARK: Waiting for a server

  func testWaitForReady() async {
    let cases: [(options: Bool?, config: Bool, rule: Bool?, expected: Bool)] = [
      (nil, false, nil, false), (nil, false, false, false), (nil, false, true, true),
      (nil, true, false, true), (nil, true, nil, true),
      (false, true, true, false), (false, false, true, false), (true, false, false, true),
    ]
    for (options, config, rule, expected) in cases {
      let transport = Self.transport(MethodRules(waitForReady: rule)) { $0.reply("\"x\"") }
      let client = ProtocolClient.scripted(transport) { $0.waitForReady = config }
      let response = await client.unary(.unary, "x", options: CallOptions(waitForReady: options))
      XCTAssertEqual(response.code, .ok)
      XCTAssertEqual(
        transport.streams.map(\.request.waitsForReady),
        [expected],
        "\(String(describing: (options, config, rule)))"
      )
    }
  }

  // MARK: Sizes

  /// The same errors as the client's own limits give, in both directions and for all kinds of calls.
  func testTheSmallerMessageSizeCounts() async {
    let rules = MethodRules(maximumRequestMessageSize: 6, maximumResponseMessageSize: 6)
    let limits = ProtocolClientConfig.Limits(maximumReceivedMessageSize: 6, maximumSentMessageSize: 6)
    let large = ProtocolClientConfig.Limits(maximumReceivedMessageSize: 7, maximumSentMessageSize: 7)
    for (request, answer) in [("xxxx", "xxxx"), ("xxxxx", "x"), ("x", "xxxxx")] {
      var errors: [[String?]] = []
      for (rules, limits) in [
        (rules, .defaults), (rules, large), (MethodRules(maximumRequestMessageSize: 7), limits),
      ] as [(MethodRules, ProtocolClientConfig.Limits)] {
        let transport = Self.transport(rules) { stream in
          if case .complete = stream.request.body { return stream.reply("\"\(answer)\"") }
          stream.respondStream()
          stream.onFinish = { stream in
            stream.sendMessage("\"\(answer)\"")
            stream.endStream()
          }
        }
        let client = ProtocolClient.scripted(transport) { $0.limits = limits }
        let unary = await client.unary(.unary, Text(request))
        let stream = client.serverStream(.serverStream, Text(request))
        var error: ConnectError?
        do {
          for try await _ in stream.messages {}
        } catch let failure {
          error = ConnectError(failure)
        }
        XCTAssertEqual(unary.error?.code, error?.code)
        errors.append([unary.error?.description, error?.description])
        if request.utf8.count > 4 { XCTAssertEqual(transport.streams[0].body.readableBytes, 0) }
      }
      XCTAssertEqual(errors[0], errors[2])
      XCTAssertEqual(errors[1], errors[2])
      if request.utf8.count + answer.utf8.count == 8 {
        XCTAssertEqual(errors[0], [nil, nil])
      } else {
        for error in errors[0] {
          XCTAssertTrue(error?.hasPrefix("resource_exhausted") == true, "\(error ?? "")")
          XCTAssertTrue(error?.contains("limit of 6 bytes") == true, "\(error ?? "")")
        }
      }
    }
  }

  // MARK: Hedging

  private static func hedging(_ attempts: Int, budget: RetryBudget? = nil) -> MethodRules {
    MethodRules(
      hedging: HedgingPolicy(
        maximumAttempts: attempts,
        delay: .seconds(1),
        codes: [.aborted],
        allowsSideEffects: true,
        budget: budget
      )
    )
  }

  /// The service's owner says which methods may be called twice.
  func testHedgesAsTheRulesSay() async {
    let call = HedgedCall(nil, method: .unary, rules: Self.hedging(3))
    call.advance(by: .seconds(1))
    XCTAssertEqual(call.attempts.count, 2)
    call.attempt(1) { $0.reply(.aborted) }
    XCTAssertEqual(call.attempts.count, 3, "at once after a code that is not fatal")
    call.attempt(2) { $0.reply(.unavailable, "fatal") }
    let response = await call.outcome()
    XCTAssertEqual(response.error?.message, "fatal")
    XCTAssertEqual(call.cancelled, [3])
  }

  func testPoliciesOfTheProgramWinOverTheRules() async {
    let own = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), allowsSideEffects: true)
    let cases: [(client: HedgingPolicy?, call: HedgingPolicy?, expected: Int)] = [
      (nil, nil, 4), (own, nil, 2), (nil, own, 2), (nil, .disabled, 1), (own, .disabled, 1),
      (.disabled, nil, 1),
    ]
    for (client, options, expected) in cases {
      let call = HedgedCall(
        client,
        method: .unary,
        options: CallOptions(hedging: options),
        rules: Self.hedging(4)
      )
      call.advance(by: .seconds(60))
      XCTAssertEqual(call.attempts.count, expected)
      call.attempt(1) { $0.reply("\"x\"") }
      let response = await call.outcome()
      XCTAssertEqual(response.message, "x")
    }
  }

  // MARK: Lookups

  /// The host's base path is no part of the method's name.
  func testRulesAreLookedUpByMethodOnce() async {
    let looked = Events()
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    func update(_ timeout: Duration?) {
      transport.serviceRules.update { method in
        looked.add("\(method.service) \(method.name)")
        return timeout.map { MethodRules(timeout: $0) }
      }
    }
    let client = ProtocolClient.scripted(transport) { $0.host = "http://scripted.test/base" }
    update(.seconds(5))
    for method in [TextMethod.unary, .unary, .read, .unary] { _ = await client.unary(method, "x") }
    XCTAssertEqual(looked.all, ["test.Text Unary", "test.Text Read"])
    update(nil)
    for _ in 0..<2 { _ = await client.unary(.unary, "x") }
    XCTAssertEqual(looked.all, ["test.Text Unary", "test.Text Read", "test.Text Unary"])
    transport.serviceRules.update(nil)
    _ = await client.unary(.unary, "x")
    XCTAssertEqual(
      transport.streams.map { $0.request.headers.first("connect-timeout-ms") },
      ["5000", "5000", "5000", "5000", nil, nil, nil]
    )
    XCTAssertEqual(
      Set(transport.streams.map(\.request.target)),
      ["/base/test.Text/Unary", "/base/test.Text/Read"]
    )
  }
}
