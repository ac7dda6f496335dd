import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import Foundation
import InMemoryTracing
import LoopbackServer
import NIOCore
import ServiceContextModule
import SwiftProtobuf
import Tracing
import XCTest

final class TracingInterceptorTests: XCTestCase {
  private let tracer = InMemoryTracer(idGenerator: .incrementing)

  private func tracing(
    _ spans: TracingInterceptor.Spans = [.call, .attempts]
  ) -> InterceptorFactory {
    { [tracer] in TracingInterceptor(config: $0, tracer: tracer, spans: spans) }
  }

  /// The spans that have ended, in the order of their start.
  private var spans: [FinishedInMemorySpan] {
    self.tracer.finishedSpans.sorted {
      $0.spanID.compare($1.spanID, options: .numeric) == .orderedAscending
    }
  }

  private func requireSpans(_ count: Int, line: UInt = #line) throws -> [FinishedInMemorySpan] {
    try requireEqual(self.spans.count, count, line: line)
    XCTAssertTrue(self.tracer.activeSpans.isEmpty, line: line)
    return self.spans
  }

  private func attributes(_ span: FinishedInMemorySpan) -> [String: String] {
    var result: [String: String] = [:]
    span.attributes.forEach { name, value in
      switch value {
      case .int32(let number): result[name] = "\(number)"
      case .int64(let number): result[name] = "\(number)"
      case .string(let text): result[name] = text
      default: result[name] = "\(value)"
      }
    }
    return result
  }

  private let echo = "connect.test.v1.TestService/Echo"

  private var ofBoth: [String: String] {
    [
      "rpc.system.name": "connectrpc", "rpc.method": self.echo, "server.address": "service.test",
      "server.port": "8080",
    ]
  }

  private func ofAttempt(status: Int, sent: Int, received: Int) -> [String: String] {
    self.ofBoth.merging([
      "network.protocol.name": "http", "network.protocol.version": "2", "network.transport": "tcp",
      "http.response.status_code": "\(status)", "http.request.body.size": "\(sent)",
      "http.response.body.size": "\(received)",
    ]) { $1 }
  }

  func testACallAndItsAttempt() async throws {
    let service = ObservedService()
    try await service.echo("hello", by: service.client(self.tracing()))
    let spans = try self.requireSpans(2)
    XCTAssertEqual(spans.map(\.operationName), [self.echo, "\(self.echo) attempt"])
    XCTAssertEqual(spans.map(\.kind), [.client, .client])
    XCTAssertEqual(spans[1].parentSpanID, spans[0].spanID)
    XCTAssertNil(spans[0].parentSpanID)
    XCTAssertNil(spans[0].status)
    XCTAssertEqual(self.attributes(spans[0]), self.ofBoth)
    let attempt = self.attributes(spans[1])
    let expected = self.ofAttempt(status: 200, sent: 9, received: 9)
    XCTAssertEqual(attempt.filter { expected[$0.key] != nil }, expected)
    XCTAssertEqual(service.requestHeaders[0]["in-memory-trace-id"], [spans[0].traceID])
    XCTAssertEqual(service.requestHeaders[0]["in-memory-span-id"], [spans[1].spanID])
  }

  func testErrors() async throws {
    let service = ObservedService()
    try await service.echo("fail:not_found", by: service.client(self.tracing()))
    for span in try self.requireSpans(2) {
      let attributes = self.attributes(span)
      XCTAssertEqual(attributes["rpc.response.status_code"], "not_found")
      XCTAssertEqual(attributes["error.type"], "not_found")
      XCTAssertEqual(span.status?.code, .error)
      XCTAssertEqual(span.status?.message, "as asked")
    }
  }

  func testGRPCHasNamesOfItsOwn() async throws {
    let service = ObservedService(.grpc)
    let client = service.client(self.tracing())
    try await service.echo("hello", by: client)
    try await service.echo("fail:canceled", by: client)
    let attributes = try self.requireSpans(4).map { self.attributes($0) }
    XCTAssertEqual(attributes.map { $0["rpc.system.name"] }, Array(repeating: "grpc", count: 4))
    XCTAssertEqual(
      attributes.map { $0["rpc.response.status_code"] },
      ["OK", "OK", "CANCELLED", "CANCELLED"]
    )
    XCTAssertEqual(attributes.map { $0["error.type"] }, [nil, nil, "CANCELLED", "CANCELLED"])
  }

  func testEachAttemptIsAChild() async throws {
    for level in RetryWhenUnavailable.Level.allCases {
      self.tracer.clearAll()
      let service = ObservedService()
      let client = service.client(self.tracing(), { _ in RetryWhenUnavailable(level: level) })
      try await service.echo("flaky", by: client)
      let spans = try self.requireSpans(3)
      XCTAssertEqual(
        spans.map(\.operationName),
        [self.echo, "\(self.echo) attempt", "\(self.echo) attempt"]
      )
      XCTAssertEqual(spans.map(\.parentSpanID), [nil, spans[0].spanID, spans[0].spanID])
      let attributes = spans.map { self.attributes($0) }
      XCTAssertEqual(attributes.map { $0["http.request.resend_count"] }, [nil, nil, "1"])
      XCTAssertEqual(attributes.map { $0["http.response.status_code"] }, [nil, "503", "200"])
      XCTAssertEqual(spans[0].status?.code, nil)
      XCTAssertEqual(service.requestHeaders.map { $0["in-memory-span-id"] }, spans[1...].map { [$0.spanID] })
    }
  }

  func testOnlyCalls() async throws {
    let service = ObservedService()
    try await service.echo("hello", by: service.client(self.tracing(.call)))
    let spans = try self.requireSpans(1)
    XCTAssertEqual(spans[0].operationName, self.echo)
    XCTAssertEqual(service.requestHeaders[0]["in-memory-span-id"], [spans[0].spanID])
  }

  /// An answer in place of the network is no attempt if what makes spans for attempts is further inside.
  func testCallsOutsideAndAttemptsInside() async throws {
    let service = ObservedService()
    let client = service.client(
      self.tracing(.call),
      { _ in AnswerKnown() },
      { _ in RetryWhenUnavailable() },
      self.tracing(.attempts)
    )
    try await service.echo("known", by: client)
    XCTAssertEqual(try self.requireSpans(1).map(\.operationName), [self.echo])
    self.tracer.clearAll()
    try await service.echo("hello", by: client)
    let spans = try self.requireSpans(2)
    XCTAssertEqual(spans[1].parentSpanID, spans[0].spanID)
    XCTAssertEqual(service.requestHeaders[0]["in-memory-span-id"], [spans[1].spanID])
  }

  func testAnswersInPlaceOfTheNetworkEndTheAttempt() async throws {
    let service = ObservedService()
    try await service.echo("known", by: service.client(self.tracing(), { _ in AnswerKnown() }))
    let spans = try self.requireSpans(2)
    XCTAssertNil(self.attributes(spans[1])["http.response.status_code"])
    XCTAssertTrue(service.requestHeaders.isEmpty)
  }

  func testChildrenOfTheCallersSpan() async throws {
    let service = ObservedService()
    let parent = self.tracer.startSpan("handler", context: .topLevel)
    var options = CallOptions()
    options.context.serviceContext = parent.context
    try await service.echo("hello", by: service.client(self.tracing()), options: options)
    parent.end()
    let spans = try self.requireSpans(3)
    XCTAssertEqual(spans.map(\.parentSpanID), [nil, parent.spanID, spans[1].spanID])
    XCTAssertEqual(Set(spans.map(\.traceID)).count, 1)
  }

  func testChildrenOfTheTasksSpan() async throws {
    let service = ObservedService()
    let client = service.client(self.tracing())
    let parent = self.tracer.startSpan("handler", context: .topLevel)
    _ = try await ServiceContext.withValue(parent.context) {
      try await service.echo("hello", by: client)
    }
    parent.end()
    let spans = try self.requireSpans(3)
    XCTAssertEqual(spans.map(\.parentSpanID), [nil, parent.spanID, spans[1].spanID])
  }

  func testInterceptorsInsideSeeTheSpan() async throws {
    let service = ObservedService()
    let seen = SeenContexts()
    try await service.echo("hello", by: service.client(self.tracing(), { _ in seen.interceptor }))
    let spans = try self.requireSpans(2)
    XCTAssertEqual(seen.spanIDs.value, [spans[0].spanID, spans[1].spanID])
  }

  func testStreams() async throws {
    let service = ObservedService()
    let client = service.client(self.tracing(), { _ in RetryWhenUnavailable() })
    try await service.converse(["flaky", "a", "b"], by: client)
    service.executor.runUntilIdle()
    let spans = try self.requireSpans(3)
    let converse = "connect.test.v1.TestService/Converse"
    XCTAssertEqual(spans.map(\.operationName), [converse, "\(converse) attempt", "\(converse) attempt"])
    XCTAssertEqual(spans.map(\.parentSpanID), [nil, spans[0].spanID, spans[0].spanID])
    XCTAssertEqual(
      spans.map { self.attributes($0)["http.response.status_code"] },
      [nil, "200", "200"]
    )
    XCTAssertEqual(service.requestHeaders.map { $0["in-memory-span-id"] }, spans[1...].map { [$0.spanID] })
  }

  func testDeadlineAndCancellation() async throws {
    let service = ObservedService()
    let client = service.client(self.tracing())
    try await service.echo("hello", by: client, options: CallOptions(timeout: .milliseconds(250)))
    service.executor.runUntilIdle()
    for span in try self.requireSpans(2) {
      XCTAssertEqual(self.attributes(span)["error.type"], "deadline_exceeded")
    }
    // What the attempt cost is known, although it was given up.
    XCTAssertNotNil(self.attributes(self.spans[1])["http.request.body.size"])

    self.tracer.clearAll()
    let stream = client.bidirectionalStream(TestMethods.converse)
    service.executor.runUntilIdle()
    stream.cancel()
    service.executor.runUntilIdle()
    for span in try self.requireSpans(2) {
      XCTAssertEqual(self.attributes(span)["error.type"], "canceled")
    }
  }

  func testManyCallsAtOnce() async throws {
    let service = ObservedService()
    let client = service.client(self.tracing())
    try await service.executor.lettingTimePass {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<1000 {
          group.addTask { _ = await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()) }
        }
      }
    }
    let spans = try self.requireSpans(2000)
    XCTAssertEqual(Set(spans.map(\.traceID)).count, 1000)
    XCTAssertEqual(Set(spans.compactMap(\.parentSpanID)).count, 1000)
  }

  func testWithoutABackendThereAreNoHooks() {
    let interceptor = TracingInterceptor(config: ProtocolClientConfig(host: "http://service.test"))
    XCTAssertNil(interceptor.unaryMessageFunction(TestMethods.echo).requestFunction)
    XCTAssertNil(interceptor.unaryFunction().requestFunction)
    XCTAssertNil(interceptor.unaryFunction().responseMetricsFunction)
    XCTAssertNil(interceptor.streamMessageFunction(TestMethods.converse).streamResultFunction)
    XCTAssertNil(interceptor.streamFunction().requestFunction)
  }

  func testRealServer() async throws {
    for version in [NIOHTTPClient.Configuration.HTTPVersion.http1Only, .http2Only] {
      self.tracer.clearAll()
      let server = try await LoopbackServer.start()
      let httpClient = NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: version))
      let client = ProtocolClient(
        httpClient: httpClient,
        config: ProtocolClientConfig(host: server.url, interceptors: [self.tracing()])
      )
      _ = try await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" }).get()
      let spans = try self.requireSpans(2)
      let attributes = self.attributes(spans[1])
      XCTAssertEqual(attributes["server.address"], "127.0.0.1")
      XCTAssertEqual(attributes["network.peer.address"], "127.0.0.1")
      XCTAssertEqual(attributes["network.peer.port"], "\(server.port)")
      XCTAssertEqual(attributes["network.protocol.version"], version == .http1Only ? "1.1" : "2")
      let request = try XCTUnwrap(server.journal.snapshot.requests.first)
      XCTAssertEqual(request.headers["in-memory-span-id"], [spans[1].spanID])
      await httpClient.shutdown()
      await server.stop()
    }
  }

  /// One span for all that hedge, with what the one that has won cost. Those that were given up are heard of later.
  func testHedging() async throws {
    for (end, error) in [(Duration.seconds(10), nil), (.milliseconds(1200), ConnectError.away)] {
      self.tracer.clearAll()
      let server = ScriptedServer { number, context in
        try await context.sleep(for: number == 1 ? end : .milliseconds(500))
        if number == 1, let error { throw error }
      }
      var options = CallOptions()
      options.hedging = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1))
      let response = try await server.call(
        server.client(self.tracing()),
        idempotencyLevel: .noSideEffects,
        options: options
      )
      XCTAssertEqual(response.code, .ok)
      server.executor.advance(by: .seconds(60))
      let spans = try self.requireSpans(2)
      XCTAssertEqual(self.attributes(spans[1])["http.response.status_code"], "200")
      XCTAssertNil(self.attributes(spans[1])["error.type"])
    }
  }

}

/// Answers calls without a message of bytes to speak of, as a cache would.
private struct AnswerKnown: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      let text = String(buffer: request.message)
      if text.contains("known") { proceed.answer(HTTPResponse()) } else { proceed(.success(request)) }
    })
  }
}

/// The spans that an interceptor sees, in message hooks and in byte hooks.
private struct SeenContexts: Sendable {
  let spanIDs = Noted<String?>()

  var interceptor: any Interceptor { Looking(seen: self.spanIDs) }

  private struct Looking: Interceptor {
    let seen: Noted<String?>

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(requestFunction: { request, proceed in
        self.seen.add(request.context.serviceContext?.inMemorySpanContext?.spanID)
        proceed(.success(request))
      })
    }

    func unaryMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> UnaryMessageFunction<Input, Output> {
      UnaryMessageFunction(requestFunction: { request, proceed in
        self.seen.add(request.context.serviceContext?.inMemorySpanContext?.spanID)
        proceed(.success(request))
      })
    }
  }
}
