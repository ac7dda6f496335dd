import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import InMemoryTracing
import Logging
import LoopbackServer
import ServiceContextModule
import SwiftProtobuf
import XCTest

final class LoggingInterceptorTests: XCTestCase {
  private let recorder = CallLogRecorder()

  private func log(
    _ service: ObservedService,
    level: Logger.Level = .trace,
    _ options: CallLog.Options = .defaults
  ) -> CallLog {
    CallLog(logger: self.recorder.makeLogger(level: level), options: options, clock: service.executor.clock)
  }

  private let common = [
    "rpc.system.name": "connectrpc", "rpc.method": "connect.test.v1.TestService/Echo",
    "server.address": "service.test", "server.port": "8080",
  ]

  func testACall() async throws {
    let service = ObservedService()
    let log = self.log(service)
    try await service.echo("hello", by: service.client({ LoggingInterceptor(log, config: $0) }))
    XCTAssertEqual(self.recorder.texts, ["call started", "call completed"])
    XCTAssertEqual(self.recorder.lines.map(\.level), [.trace, .debug])
    XCTAssertEqual(self.recorder.lines[0].metadata, self.common)
    let end = self.recorder.lines[1].metadata
    let expected = self.common.merging([
      "duration_ms": "1000.000", "attempts": "1", "http.response.status_code": "200",
      "http.request.body.size": "9", "http.response.body.size": "9",
    ]) { $1 }
    XCTAssertEqual(end.filter { $0.key != "network.peer.address" }, expected)
  }

  func testFailuresHaveLevelsByWhatTheyMean() async throws {
    let service = ObservedService()
    let log = self.log(service, level: .debug)
    let client = service.client({ LoggingInterceptor(log, config: $0) })
    for code in ["not_found", "internal", "canceled"] { try await service.echo("fail:\(code)", by: client) }
    XCTAssertEqual(self.recorder.texts, Array(repeating: "call failed", count: 3))
    XCTAssertEqual(self.recorder.lines.map(\.level), [.info, .warning, .debug])
    XCTAssertEqual(
      self.recorder.lines.map { $0.metadata["rpc.response.status_code"] },
      ["not_found", "internal", "canceled"]
    )
    XCTAssertEqual(self.recorder.lines[0].metadata["error"], "as asked")
  }

  func testLevelsOfOnesOwn() async throws {
    let service = ObservedService()
    let options = CallLog.Options(startLevel: nil, successLevel: .info, failureLevel: { _ in nil })
    let log = self.log(service, options)
    let client = service.client({ LoggingInterceptor(log, config: $0) })
    try await service.echo("hello", by: client)
    try await service.echo("fail:internal", by: client)
    XCTAssertEqual(self.recorder.texts, ["call completed"])
    XCTAssertEqual(self.recorder.lines[0].level, .info)
  }

  /// Whoever adds a header that is a secret says so.
  func testATokenInAHeaderOfOnesOwnIsRedacted() async throws {
    let service = ObservedService()
    let log = self.log(service, .init(logsHeaders: true))
    let credentials = Credentials(
      for: ["service.test"],
      token: AccessToken("s3cret"),
      configuration: .init(header: "X-Service-Token", scheme: nil, allowsCleartext: true)
    ) { _ in AccessToken("s3cret") }
    let client = service.client(
      { _ in CredentialsInterceptor(credentials) },
      { LoggingInterceptor(log, config: $0) }
    )
    try await service.echo("hello", by: client)
    // The caller's own goes in the same header.
    try await service.echo(
      "hello",
      by: client,
      options: CallOptions(headers: ["x-service-token": ["s3cret 2"]])
    )
    XCTAssertEqual(
      self.recorder.lines.compactMap { $0.metadata["rpc.request.metadata.x-service-token"] },
      ["<redacted>", "<redacted>"]
    )
    XCTAssertFalse("\(self.recorder.lines)".contains("s3cret"))
    XCTAssertEqual(service.requestHeaders.map { $0["x-service-token"] }, [["s3cret"], ["s3cret 2"]])
  }

  func testACallIsOneWithAllItsAttempts() async throws {
    for level in RetryWhenUnavailable.Level.allCases {
      self.recorder.removeAll()
      let service = ObservedService()
      let log = self.log(service)
      let client = service.client(
        { LoggingInterceptor(log, config: $0) },
        { _ in RetryWhenUnavailable(level: level) }
      )
      try await service.echo("flaky", by: client)
      XCTAssertEqual(self.recorder.texts, ["call started", "call completed"])
      XCTAssertEqual(self.recorder.lines.last?.metadata["attempts"], "2")
      XCTAssertEqual(self.recorder.lines.last?.metadata["duration_ms"], "4000.000")
    }
  }

  func testDeadlineAndCancellation() async throws {
    let service = ObservedService()
    let log = self.log(service, level: .debug)
    let client = service.client({ LoggingInterceptor(log, config: $0) })
    try await service.echo("hello", by: client, options: CallOptions(timeout: .milliseconds(250)))
    let stream = client.bidirectionalStream(TestMethods.converse)
    service.executor.runUntilIdle()
    stream.cancel()
    service.executor.runUntilIdle()
    XCTAssertEqual(
      self.recorder.lines.map { $0.metadata["rpc.response.status_code"] },
      ["deadline_exceeded", "canceled"]
    )
    XCTAssertEqual(self.recorder.lines.map(\.level), [.warning, .debug])
    XCTAssertEqual(self.recorder.lines[0].metadata["duration_ms"], "250.000")
  }

  func testHeadersAreRedacted() async throws {
    let service = ObservedService()
    var options = CallLog.Options(logsHeaders: true)
    options.redactedHeaders.insert("X-Tenant")
    let log = self.log(service, level: .debug, options)
    let client = service.client(
      { LoggingInterceptor(log, config: $0) },
      { _ in AddHeader(name: "authorization", value: "Bearer secret") }
    )
    let headers: Headers = [
      "x-tenant": ["secret"], "x-many": ["1", "2"], "x-long": [String(repeating: "a", count: 2000)],
    ]
    try await service.echo("hello", by: client, options: CallOptions(headers: headers))
    let metadata = try XCTUnwrap(self.recorder.lines.first).metadata
    XCTAssertEqual(metadata["rpc.request.metadata.authorization"], "<redacted>")
    XCTAssertEqual(metadata["rpc.request.metadata.x-tenant"], "<redacted>")
    XCTAssertEqual(metadata["rpc.request.metadata.x-many"], #"["1", "2"]"#)
    XCTAssertEqual(metadata["rpc.request.metadata.x-long"], String(repeating: "a", count: 1024) + "…")
    XCTAssertEqual(metadata["rpc.response.metadata.set-cookie"], "<redacted>")
    XCTAssertEqual(metadata["rpc.response.metadata.x-cost"], "3")
    XCTAssertFalse("\(metadata)".contains("secret"))

    self.recorder.removeAll()
    try await service.echo("fail:internal", by: client, options: CallOptions(headers: headers))
    let failure = try XCTUnwrap(self.recorder.lines.first).metadata
    XCTAssertEqual(failure["rpc.response.metadata.x-failed"], "yes")
    XCTAssertFalse("\(failure)".contains("secret"))
  }

  func testNoHeadersUnlessAskedFor() async throws {
    let service = ObservedService()
    let log = self.log(service)
    let client = service.client({ LoggingInterceptor(log, config: $0) })
    try await service.echo("hello", by: client, options: CallOptions(headers: ["x-tenant": ["secret"]]))
    XCTAssertFalse("\(self.recorder.lines)".contains("secret"))
    XCTAssertFalse("\(self.recorder.lines)".contains("metadata.x-"))
  }

  func testMessages() async throws {
    let service = ObservedService()
    var options = CallLog.Options(startLevel: nil, maximumLength: 10)
    options.messageFormatter = { message in
      switch message {
      case let message as Connect_Test_V1_EchoRequest: "asked: \(message.payload.text)"
      case let message as Connect_Test_V1_EchoResponse: "told: \(message.payload.text)"
      case let message as Connect_Test_V1_ConverseRequest: message.payload.text
      case let message as Connect_Test_V1_ConverseResponse: message.payload.text
      default: ""
      }
    }
    let log = self.log(service, options)
    let client = service.client({ LoggingInterceptor(log, config: $0) })
    try await service.echo("hello", by: client)
    XCTAssertEqual(self.recorder.texts, ["message sent", "message received", "call completed"])
    XCTAssertEqual(self.recorder.lines.map { $0.metadata["message"] }, ["asked: hel…", "told: hell…", nil])

    self.recorder.removeAll()
    try await service.converse(["a", "b"], by: client)
    XCTAssertEqual(self.recorder.texts.filter { $0 == "message sent" }.count, 2)
    XCTAssertEqual(self.recorder.texts.filter { $0 == "message received" }.count, 2)
    let end = try XCTUnwrap(self.recorder.lines.last)
    XCTAssertEqual(end.text, "call completed")
    XCTAssertEqual(end.metadata["messages.sent"], "2")
    XCTAssertEqual(end.metadata["messages.received"], "2")
  }

  /// Text is only made of what is logged.
  func testMessagesBelowTheLevelAreNotFormatted() async throws {
    let service = ObservedService()
    let formatted = Noted<Void>()
    var options = CallLog.Options()
    options.messageFormatter = { _ in
      formatted.add(())
      return ""
    }
    let log = self.log(service, level: .info, options)
    try await service.echo("hello", by: service.client({ LoggingInterceptor(log, config: $0) }))
    XCTAssertTrue(formatted.value.isEmpty)
    XCTAssertTrue(self.recorder.lines.isEmpty)
  }

  func testSampling() async throws {
    let service = ObservedService()
    var options = CallLog.Options(startLevel: nil)
    options.sampling = LogSampling(first: 2, thereafter: 3, interval: .seconds(10))
    let log = self.log(service, options)
    let client = service.client({ LoggingInterceptor(log, config: $0) })
    for _ in 0..<9 { try await service.echo("hello", by: client) }
    // Failures are counted apart.
    try await service.echo("fail:internal", by: client)
    XCTAssertEqual(
      self.recorder.texts,
      ["call completed", "call completed", "call completed", "call completed", "call failed"]
    )
    XCTAssertEqual(self.recorder.lines.map { $0.metadata["suppressed"] }, [nil, nil, "2", "2", nil])
    // Another interval.
    self.recorder.removeAll()
    try await service.echo("hello", by: client)
    XCTAssertEqual(self.recorder.lines.map { $0.metadata["suppressed"] }, ["1"])
  }

  func testLinesKnowTheTrace() async throws {
    let service = ObservedService()
    let tracer = InMemoryTracer()
    let provider = Logger.MetadataProvider {
      ServiceContext.current?.inMemorySpanContext.map { ["trace": "\($0.traceID)"] } ?? [:]
    }
    let log = CallLog(logger: self.recorder.makeLogger(provider: provider))
    let client = service.client(
      { TracingInterceptor(config: $0, tracer: tracer) },
      { LoggingInterceptor(log, config: $0) }
    )
    try await service.echo("hello", by: client)
    let trace = try XCTUnwrap(tracer.finishedSpans.first).traceID
    XCTAssertEqual(self.recorder.lines.map { $0.metadata["trace"] }, [trace, trace])
  }

  func testLinesKnowTheRequest() async throws {
    let service = ObservedService()
    let log = self.log(service)
    let client = service.client({ _ in ContextInterceptor() }, { LoggingInterceptor(log, config: $0) })
    try await service.echo("hello", by: client)
    let id = try XCTUnwrap(service.requestHeaders.first?.first("x-request-id"))
    XCTAssertEqual(self.recorder.lines.map { $0.metadata["request.id"] }, [id, id])
  }

  func testWithoutABackendThereAreNoHooks() {
    let config = ProtocolClientConfig(host: "http://service.test")
    let interceptor = LoggingInterceptor(CallLog(logger: config.logger), config: config)
    XCTAssertNil(interceptor.unaryMessageFunction(TestMethods.echo).requestFunction)
    XCTAssertNil(interceptor.unaryFunction().responseMetricsFunction)
    XCTAssertNil(interceptor.streamMessageFunction(TestMethods.converse).streamResultFunction)
    XCTAssertNil(interceptor.streamFunction().responseMetricsFunction)
  }

  func testRealServer() async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient()
    let log = CallLog(logger: self.recorder.makeLogger(level: .debug))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        networkProtocol: .grpcWeb,
        interceptors: [{ LoggingInterceptor(log, config: $0) }]
      )
    )
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<1000 {
        group.addTask { _ = try await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()).get() }
      }
      try await group.waitForAll()
    }
    XCTAssertEqual(self.recorder.texts, Array(repeating: "call completed", count: 1000))
    let metadata = try XCTUnwrap(self.recorder.lines.first).metadata
    XCTAssertEqual(metadata["rpc.system.name"], "grpc")
    XCTAssertEqual(metadata["rpc.response.status_code"], "OK")
    XCTAssertEqual(metadata["network.peer.address"], "127.0.0.1")
    XCTAssertEqual(metadata["server.port"], "\(server.port)")
    await httpClient.shutdown()
    await server.stop()
  }
}

private struct AddHeader: Interceptor {
  let name: String
  let value: String

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(requestFunction: { request, proceed in
      var request = request
      request.headers[self.name] = [self.value]
      proceed(.success(request))
    })
  }
}
