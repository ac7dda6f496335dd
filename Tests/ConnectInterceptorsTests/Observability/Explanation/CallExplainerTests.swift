import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

final class CallExplainerTests: XCTestCase {
  func testWhereTheTimeGoes() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let clock = service.executor.clock
    let client = service.client(
      { _ in Delay(executor: service.executor, request: .seconds(2), response: .seconds(3)) },
      { _ in AsyncDelay(clock: clock) },
      { _ in RetryWhenUnavailable() }
    )
    try await service.echo("flaky", by: client, options: CallOptions().explained(by: explainer))
    service.executor.runUntilIdle()
    let explanation = explainer.explanation
    XCTAssertEqual(explanation.method, "connect.test.v1.TestService/Echo")
    XCTAssertEqual(explanation.server, "http://service.test:8080")
    XCTAssertEqual(explanation.code, .ok)
    // 2 (for each attempt) and 3 of the first, 5 and 7 of the second, two attempts of 1, and 2 between them.
    XCTAssertEqual(explanation.duration, .seconds(23))
    XCTAssertEqual(explanation.interceptors.map(\.name), ["Delay", "AsyncDelay", "RetryWhenUnavailable"])
    XCTAssertEqual(explanation.interceptors.map(\.request), [.seconds(4), .seconds(5), .zero])
    XCTAssertEqual(explanation.interceptors.map(\.response), [.seconds(3), .seconds(7), .zero])
    XCTAssertEqual(explanation.encoding, .zero)
    XCTAssertEqual(explanation.decoding, .zero)
    XCTAssertEqual(explanation.attempts.map(\.start), [.seconds(7), .seconds(12)])
    XCTAssertEqual(explanation.attempts.map(\.code), [.unavailable, .ok])
    XCTAssertEqual(explanation.attempts.map { $0.metrics?.httpStatus }, [503, 200])
    XCTAssertEqual(explanation.attempts.map { $0.metrics?.duration }, [.seconds(1), .seconds(1)])
    XCTAssertEqual(explanation.attempts.map(\.requestMessageBytes), [9, 9])
    XCTAssertEqual(explanation.attempts.map(\.responseMessageBytes), [0, 9])
  }

  func testText() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = service.client(
      { _ in Delay(executor: service.executor, request: .milliseconds(5), response: .microseconds(250)) },
      { _ in RetryWhenUnavailable() }
    )
    try await service.echo("flaky", by: client, options: CallOptions().explained(by: explainer))
    let lines = explainer.explanation.description.split(separator: "\n").map(String.init)
    XCTAssertEqual(
      lines.prefix(5),
      [
        "connect.test.v1.TestService/Echo at http://service.test:8080: ok after 4010.250 ms",
        "  Delay: 10.000 ms down, 0.250 ms up",
        "  RetryWhenUnavailable: 0.000 ms down, 0.000 ms up",
        "  encoding 0.000 ms, decoding 0.000 ms",
        "  attempt 1, after 5.000 ms: unavailable",
      ]
    )
    XCTAssertTrue(lines.contains("    1000.000 ms until the response's head, HTTP 503"), "\(lines)")
    XCTAssertTrue(lines.contains("  attempt 2, after 3010.000 ms: ok"), "\(lines)")
    XCTAssertTrue(lines.contains("    sent 9 bytes for 9 of messages, received 9 for 9"), "\(lines)")
  }

  /// What an interceptor holds up counts, even if it never proceeds.
  func testACallThatEndsInAnInterceptor() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = service.client(
      { _ in Delay(executor: service.executor, request: .seconds(100), response: .zero) }
    )
    try await service.echo(
      "hello",
      by: client,
      options: CallOptions(timeout: .seconds(4)).explained(by: explainer)
    )
    let explanation = explainer.explanation
    XCTAssertEqual(explanation.code, .deadlineExceeded)
    XCTAssertEqual(explanation.duration, .seconds(4))
    XCTAssertEqual(explanation.interceptors.map(\.request), [.seconds(4)])
    XCTAssertTrue(explanation.attempts.isEmpty)
    // Nor does it change when the interceptor proceeds at last.
    service.executor.advance(by: .seconds(100))
    XCTAssertEqual(explainer.explanation.description, explanation.description)
  }

  /// Metrics of attempts that were given up come when the call is over; they are not those of the one that has won.
  func testHedging() async throws {
    // When the first attempt ends, and how; the second ends well half a second after its start.
    for (end, error) in [(Duration.seconds(10), nil), (.milliseconds(1200), ConnectError.away)] {
      let server = ScriptedServer { number, context in
        try await context.sleep(for: number == 1 ? end : .milliseconds(500))
        if number == 1, let error { throw error }
      }
      let explainer = CallExplainer(clock: server.executor.clock)
      var options = CallOptions().explained(by: explainer)
      options.hedging = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), budget: nil)
      let response = try await server.call(
        server.client(),
        idempotencyLevel: .noSideEffects,
        options: options
      )
      XCTAssertEqual(response.code, .ok)
      let explanation = explainer.explanation
      server.executor.advance(by: .seconds(60))
      XCTAssertEqual(explainer.explanation.attempts, explanation.attempts)
      XCTAssertEqual(explanation.attempts.map(\.code), [.ok])
      XCTAssertEqual(explanation.attempts.map { $0.metrics?.attempt }, [2])
      XCTAssertEqual(explanation.attempts.map { $0.metrics?.httpStatus }, [200])
      XCTAssertEqual(explanation.attempts.map(\.start), [.zero])
      XCTAssertEqual(explanation.attempts.map(\.exchangeStart), [.seconds(1)])
      let others = explanation.attempts.flatMap(\.otherExchanges)
      XCTAssertEqual(others.map(\.metrics.attempt), [1])
      XCTAssertEqual(others.map(\.start), [.zero])
      XCTAssertEqual(others.map(\.metrics.duration), [error == nil ? .milliseconds(1500) : end])
      XCTAssertEqual(explanation.duration, .milliseconds(1500))
    }
  }

  func testACallUnderWay() throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = service.client()
    let options = CallOptions().explained(by: explainer)
    client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest(), options: options) { _ in }
    service.executor.runUntilIdle()
    service.executor.advance(by: .milliseconds(400))
    let explanation = explainer.explanation
    XCTAssertNil(explanation.code)
    XCTAssertEqual(explanation.duration, .milliseconds(400))
    XCTAssertEqual(explanation.attempts.count, 1)
    XCTAssertNil(explanation.attempts[0].metrics)
    XCTAssertTrue(explanation.description.contains("not over after 400.000 ms"))
  }

  /// One explainer in many calls at once, with chains of different lengths: each has an explanation of its own.
  func testManyCallsAtOnce() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(maximumCalls: 200, clock: service.executor.clock)
    let clients = [
      service.client(),
      service.client({ _ in Delay(executor: service.executor, request: .seconds(2), response: .seconds(3)) }),
      service.client(
        { _ in AsyncDelay(clock: service.executor.clock) },
        { _ in Delay(executor: service.executor, request: .seconds(2), response: .seconds(3)) },
        { _ in RetryWhenUnavailable() }
      ),
    ]
    let options = CallOptions().explained(by: explainer)
    try await service.executor.lettingTimePass {
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<60 {
          group.addTask {
            let client = clients[index % 3]
            let text = index.isMultiple(of: 4) ? "fail:not_found" : "hello"
            if index.isMultiple(of: 5) {
              _ = try? await client.serverStream(TestMethods.count, .init(), options: options).results
                .collected()
            } else {
              _ = await client.unary(TestMethods.echo, .with { $0.payload.text = text }, options: options)
            }
          }
        }
      }
    }
    let explanations = explainer.explanations
    XCTAssertEqual(explanations.count, 60)
    XCTAssertEqual(Set(explanations.map(\.interceptors.count)), [0, 1, 3])
    for explanation in explanations {
      XCTAssertNotNil(explanation.code)
      XCTAssertEqual(explanation.attempts.count, 1)
      for time in explanation.interceptors where time.name == "Delay" && explanation.method.hasSuffix("Echo")
      {
        XCTAssertEqual(time.request, .seconds(2))
        XCTAssertEqual(time.response, .seconds(3))
      }
    }
  }

  func testOldestCallsAreForgotten() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(maximumCalls: 2, clock: service.executor.clock)
    XCTAssertEqual(explainer.explanation.interceptors, [])
    for text in ["a", "fail:aborted", "fail:not_found"] {
      let options = CallOptions().explained(by: explainer)
      try await service.echo(text, by: service.client(), options: options)
    }
    XCTAssertEqual(explainer.explanations.map(\.code), [.aborted, .notFound])
    XCTAssertEqual(explainer.explanation.code, .notFound)
  }

  func testStreams() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = service.client(
      { _ in Delay(executor: service.executor, request: .seconds(2), response: .seconds(3)) },
      { _ in AsyncDelay(clock: service.executor.clock) }
    )
    try await service.converse(["a", "b"], by: client, options: CallOptions().explained(by: explainer))
    service.executor.runUntilIdle()
    let explanation = explainer.explanation
    XCTAssertEqual(explanation.code, .ok)
    XCTAssertEqual(explanation.interceptors.map(\.request), [.seconds(2), .seconds(5)])
    XCTAssertEqual(explanation.interceptors.map(\.response), [.seconds(3), .seconds(7)])
    XCTAssertEqual(explanation.attempts.map(\.code), [.ok])
    XCTAssertEqual(explanation.attempts.map(\.requestMessageBytes), [10])
    XCTAssertEqual(explanation.attempts.map(\.responseMessageBytes), [10])
    XCTAssertEqual(explanation.attempts.map(\.requestMessages.count), [2])
    XCTAssertEqual(explanation.attempts.map(\.responseMessages.count), [2])
    let times = try XCTUnwrap(explanation.attempts.first?.responseMessages)
    XCTAssertEqual(times.times.last, times.last)
    XCTAssertEqual(times.times, times.times.sorted())
  }

  /// Memory does not grow with the messages of a stream.
  func testTimesOfMessages() {
    var messages = CallExplanation.Messages()
    XCTAssertNil(messages.last)
    for second in 0..<1_000 { messages.note(at: .seconds(second)) }
    XCTAssertEqual(messages.count, 1_000)
    XCTAssertEqual(messages.times, (0..<100).map { .seconds($0) })
    XCTAssertEqual(messages.last, .seconds(999))
  }

  func testCompression() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let transport = InMemoryTransport(responseCompression: GzipCompressionPool())
      let long = String(repeating: "a", count: 5000)
      transport.onUnary(TestMethods.echo) { _, _ in .with { $0.payload.text = long } }
      var config = ProtocolClientConfig(host: "http://service.test", networkProtocol: networkProtocol)
      config.compression.requests = GzipCompressionPool()
      let client = ProtocolClient(httpClient: transport, config: config)
      let explainer = CallExplainer()
      let options = CallOptions().explained(by: explainer)
      _ = try await client.unary(TestMethods.echo, .with { $0.payload.text = long }, options: options).get()
      let attempt = try XCTUnwrap(explainer.explanation.attempts.first)
      let metrics = try XCTUnwrap(attempt.metrics)
      XCTAssertEqual(metrics.requestEncoding, "gzip")
      XCTAssertEqual(metrics.responseEncoding, "gzip")
      XCTAssertGreaterThan(attempt.requestMessageBytes, 5000)
      XCTAssertGreaterThan(attempt.responseMessageBytes, 5000)
      XCTAssertLessThan(metrics.requestBodyBytes, 200)
      XCTAssertLessThan(metrics.responseBodyBytes, 200)
      let text = explainer.explanation.description
      XCTAssertTrue(text.contains("of messages in gzip"), text)
    }
  }

  /// What the network did: a connection is opened with TLS, then used again.
  func testRealServer() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    var configuration = NIOHTTPClient.Configuration.defaults
    configuration.tls.trustRoots = .pemBytes(Array(certificates.authorityPEM.utf8))
    let httpClient = NIOHTTPClient(configuration: configuration)
    let client = ProtocolClient(httpClient: httpClient, config: ProtocolClientConfig(host: server.url))
    var explanations: [CallExplanation] = []
    for _ in 0..<2 {
      let explainer = CallExplainer()
      let text = String(repeating: "a", count: 5000)
      _ = try await client.unary(
        TestMethods.echo,
        Connect_Test_V1_EchoRequest.with { $0.payload.text = text },
        options: CallOptions().explained(by: explainer)
      ).get()
      explanations.append(explainer.explanation)
    }
    await httpClient.shutdown()
    await server.stop()

    let metrics = explanations.compactMap { $0.attempts.first?.metrics }
    XCTAssertEqual(metrics.map { $0.connection?.isReused }, [false, true])
    let setup = try XCTUnwrap(metrics[0].connection?.setup)
    XCTAssertGreaterThan(setup.connecting, .zero)
    XCTAssertGreaterThan(try XCTUnwrap(setup.tls), .zero)
    XCTAssertLessThanOrEqual(setup.total, try XCTUnwrap(metrics[0].timeToConnection))
    XCTAssertNil(metrics[1].connection?.setup)
    for (explanation, metrics) in zip(explanations, metrics) {
      XCTAssertNil(metrics.requestEncoding)
      XCTAssertEqual(explanation.attempts[0].requestMessageBytes, 5006)
      XCTAssertEqual(metrics.requestBodyBytes, 5006)
      XCTAssertGreaterThan(explanation.encoding, .zero)
      XCTAssertGreaterThan(explanation.decoding, .zero)
    }
    let text = explanations[0].description
    XCTAssertTrue(text.contains("name resolution ") && text.contains(", TLS "), text)
  }

  /// The verbs of hooks pass through the stopwatch: failing, answering, retrying, dropping.
  func testAStopwatchChangesNothing() async throws {
    for name in ["fail", "answer", "drop"] {
      var outcomes: [String] = []
      for isExplained in [false, true] {
        let service = ObservedService()
        let client = service.client({ _ in Verbs(name: name) })
        let options = isExplained ? CallOptions().explained(by: CallExplainer()) : CallOptions()
        let response = try await service.echo("hello", by: client, options: options)
        let stream = try await service.converse(["a", "b", "c"], by: client, options: options)
        outcomes.append(
          "\(response.code) \(response.message?.payload.text ?? "") "
            + "\(stream.code) \(stream.messages.map(\.payload.text))"
        )
      }
      XCTAssertEqual(outcomes[0], outcomes[1])
    }
  }
}

private struct Delay: Interceptor {
  let executor: VirtualExecutor
  let request: Duration
  let response: Duration

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        _ = self.executor.schedule(after: self.request) { proceed(.success(request)) }
      },
      responseFunction: { response, proceed in
        _ = self.executor.schedule(after: self.response) { proceed(response) }
      }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { request, proceed in
        _ = self.executor.schedule(after: self.request) { proceed(.success(request)) }
      },
      streamResultFunction: { result, proceed in
        guard case .headers = result else { return proceed(result) }
        _ = self.executor.schedule(after: self.response) { proceed(result) }
      }
    )
  }
}

private struct AsyncDelay: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  let clock: VirtualClock

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    try await self.clock.sleep(for: .seconds(5))
    let response = try await next(request)
    try await self.clock.sleep(for: .seconds(7))
    return response
  }

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await self.clock.sleep(for: .seconds(5))
    let response = try await next(request)
    try await self.clock.sleep(for: .seconds(7))
    return response
  }
}

private struct Verbs: Interceptor {
  let name: String

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      switch self.name {
      case "fail": proceed(.failure(ConnectError(code: .aborted)))
      case "answer": proceed.answer(HTTPResponse())
      default: proceed(.success(request))
      }
    })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        switch self.name {
        case "fail": proceed(.failure(ConnectError(code: .aborted)))
        case "answer": proceed.answer(StreamAnswer(messages: []))
        default: proceed(.success(request))
        }
      },
      requestDataFunction: { bytes, proceed in
        if String(buffer: bytes).contains("b") { proceed.drop() } else { proceed(bytes) }
      },
      streamResultFunction: { result, proceed in
        if case .message(let bytes) = result, String(buffer: bytes).contains("c") {
          proceed.drop()
        } else {
          proceed(result)
        }
      }
    )
  }
}
