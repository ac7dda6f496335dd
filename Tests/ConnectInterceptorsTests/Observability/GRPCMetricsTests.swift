import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import CoreMetrics
import Logging
import LoopbackServer
import MetricsTestKit
import XCTest

/// gRPC's metrics of calls.
final class GRPCMetricsTests: XCTestCase {
  private let backend = TestMetrics()

  private func metrics(_ service: ObservedService, _ families: MetricFamilies = .grpc) -> CallMetrics {
    CallMetrics(
      factory: self.backend,
      options: CallMetrics.Options(families: families),
      clock: service.executor.clock
    )
  }

  /// `status: values` of a metric, seconds for timers; by the label that is left besides method and target.
  private func values(_ name: String) -> [String: [Double]] {
    var values: [String: [Double]] = [:]
    func key(_ dimensions: [(String, String)]) -> String {
      dimensions.first { $0.0 == "grpc.status" }?.1 ?? ""
    }
    for timer in self.backend.timers(label: name) {
      values[key(timer.dimensions), default: []] += timer.values.map { Double($0) / 1e9 }
    }
    for recorder in self.backend.recorders(label: name) {
      values[key(recorder.dimensions), default: []] += recorder.values
    }
    for counter in self.backend.counters(label: name) {
      values[key(counter.dimensions), default: []].append(Double(counter.totalValue))
    }
    return values
  }

  private func attempts(_ name: String) -> [String: [Double]] { self.values("grpc.client.attempt.\(name)") }

  private func calls(_ name: String) -> [String: [Double]] { self.values("grpc.client.call.\(name)") }

  private static let echo = [
    ("grpc.method", "connect.test.v1.TestService/Echo"), ("grpc.target", "dns:///service.test:8080"),
  ]

  func testOneAttempt() async throws {
    for networkProtocol in [NetworkProtocol.grpc, .grpcWeb, .grpcWebText, .connect] {
      self.backend.reset()
      let service = ObservedService(networkProtocol)
      let metrics = self.metrics(service)
      let client = service.client({ MetricsInterceptor(metrics, config: $0) })
      try await service.echo("hello", by: client)
      let status = Self.echo + [("grpc.status", "OK")]
      XCTAssertEqual(try self.backend.expectCounter("grpc.client.attempt.started", Self.echo).totalValue, 1)
      for name in ["attempt", "call"] {
        let timer = try self.backend.expectTimer("grpc.client.\(name).duration", status)
        XCTAssertEqual(timer.values, [1_000_000_000])
      }
      // A payload of five bytes, in a message of a message.
      for name in ["sent", "rcvd"] {
        let label = "grpc.client.attempt.\(name)_total_compressed_message_size"
        XCTAssertEqual(try self.backend.expectRecorder(label, status).values, [9], "\(networkProtocol)")
      }
      XCTAssertEqual(self.calls("retry_delay"), ["": [0]])
      XCTAssertEqual(self.backend.timers.count + self.backend.recorders.count, 5)
    }
  }

  func testStreams() async throws {
    for networkProtocol in [NetworkProtocol.grpc, .grpcWeb, .grpcWebText, .connect] {
      self.backend.reset()
      let service = ObservedService(networkProtocol)
      let metrics = self.metrics(service)
      let client = service.client({ MetricsInterceptor(metrics, config: $0) })
      try await service.converse(["a", "bc", "def"], by: client)
      XCTAssertEqual(self.attempts("sent_total_compressed_message_size"), ["OK": [18]], "\(networkProtocol)")
      XCTAssertEqual(self.attempts("rcvd_total_compressed_message_size"), ["OK": [18]], "\(networkProtocol)")
      XCTAssertEqual(self.calls("duration"), ["OK": [3]])
    }
  }

  /// Messages count as they are sent: compressed.
  func testCompressedMessages() async throws {
    for networkProtocol in [NetworkProtocol.grpc, .grpcWeb, .grpcWebText, .connect] {
      self.backend.reset()
      let service = ObservedService(networkProtocol)
      let metrics = self.metrics(service)
      let compression = Compression(requests: GzipCompressionPool(), minimumRequestBytes: 0)
      let client = service.client(compression: compression, { MetricsInterceptor(metrics, config: $0) })
      try await service.echo(String(repeating: "a", count: 10_000), by: client)
      let sent = try XCTUnwrap(self.attempts("sent_total_compressed_message_size")["OK"]?.first)
      XCTAssertGreaterThan(sent, 10, "\(networkProtocol)")
      XCTAssertLessThan(sent, 1000, "\(networkProtocol)")
    }
  }

  func testRetries() async throws {
    for level in RetryWhenUnavailable.Level.allCases {
      self.backend.reset()
      let service = ObservedService(.grpc)
      let metrics = self.metrics(service)
      let client = service.client(
        { MetricsInterceptor(metrics, config: $0) },
        { _ in RetryWhenUnavailable(level: level) }
      )
      try await service.echo("flaky", by: client)
      XCTAssertEqual(self.attempts("started"), ["": [2]], "\(level)")
      XCTAssertEqual(self.attempts("duration"), ["UNAVAILABLE": [1], "OK": [1]], "\(level)")
      XCTAssertEqual(self.calls("duration"), ["OK": [4]], "\(level)")
      XCTAssertEqual(self.calls("retries"), ["": [1]], "\(level)")
      XCTAssertEqual(self.calls("retry_delay"), ["": [2]], "\(level)")
      XCTAssertEqual(self.calls("hedges"), [:], "\(level)")
      XCTAssertEqual(self.calls("transparent_retries"), [:], "\(level)")
    }
  }

  func testHedges() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service)
    let client = service.client({ MetricsInterceptor(metrics, config: $0) })
    var options = CallOptions()
    options.hedging = HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(400), allowsSideEffects: true)
    try await service.echo("hello", by: client, options: options)
    service.executor.runUntilIdle()
    XCTAssertEqual(self.attempts("started"), ["": [3]])
    XCTAssertEqual(
      self.attempts("duration").mapValues { $0.sorted() },
      ["OK": [1], "CANCELLED": [0.2, 0.6]]
    )
    XCTAssertEqual(self.calls("duration"), ["OK": [1]])
    XCTAssertEqual(self.calls("hedges"), ["": [2]])
    XCTAssertEqual(self.calls("retries"), [:])
    XCTAssertEqual(self.calls("retry_delay"), ["": [0]])
  }

  func testDeadline() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service, [.grpc, .openTelemetry])
    let client = service.client({ MetricsInterceptor(metrics, config: $0) })
    try await service.echo("hello", by: client, options: CallOptions(timeout: .milliseconds(250)))
    service.executor.runUntilIdle()
    XCTAssertEqual(self.attempts("duration"), ["DEADLINE_EXCEEDED": [0.25]])
    XCTAssertEqual(self.calls("duration"), ["DEADLINE_EXCEEDED": [0.25]])
    XCTAssertEqual(self.values("rpc.client.call.duration"), ["": [0.25]])
  }

  /// Methods that come from a schema at run time are counted together, and those beyond the limit.
  func testOtherMethods() async throws {
    for includesDynamicMethods in [false, true] {
      self.backend.reset()
      let service = ObservedService()
      var options = CallMetrics.Options(families: .grpc, maximumMethods: 2)
      options.includesDynamicMethods = includesDynamicMethods
      let metrics = CallMetrics(factory: self.backend, options: options, clock: service.executor.clock)
      let client = service.client({ MetricsInterceptor(metrics, config: $0) })
      try await service.executor.lettingTimePass {
        var info = TestMethods.echo.info
        info.isDynamic = true
        let dynamic = MethodSpec(info: info, input: TestMethods.echo.input, output: TestMethods.echo.output)
        _ = await client.unary(dynamic, Connect_Test_V1_EchoRequest())
      }
      XCTAssertEqual(
        self.backend.counters.map { $0.dimensions.map(\.1) },
        [
          [
            includesDynamicMethods ? "connect.test.v1.TestService/Echo" : "other", "dns:///service.test:8080",
          ]
        ]
      )
      try await service.executor.lettingTimePass {
        for number in 0..<10 {
          let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
            path: "/a.B/M\(number)",
            streamType: .unary
          )
          _ = await client.unary(method, Connect_Test_V1_EchoRequest())
        }
      }
      XCTAssertEqual(self.backend.counters.count, 3)
      let others = [("grpc.method", "other"), ("grpc.target", "other")]
      XCTAssertEqual(try self.backend.expectCounter("grpc.client.attempt.started", others).totalValue, 9)
    }
  }

  func testWithoutTheFamilyNothingObservesAttempts() {
    let config = ProtocolClientConfig(host: "http://service.test")
    let info = TestMethods.echo.info
    let metrics = CallMetrics(factory: self.backend)
    XCTAssertNil(MetricsInterceptor(metrics, config: config).attemptFunction())
    let silent = CallMetrics(options: CallMetrics.Options(families: .grpc))
    XCTAssertNil(MetricsInterceptor(silent, config: config).attemptFunction())
    let empty = CallMetrics(factory: self.backend, options: CallMetrics.Options(families: []))
    XCTAssertNil(MetricsInterceptor(empty, config: config).callFunction(info).requestFunction)
  }

  // MARK: Over sockets

  /// The recommended set over a real server, with a retry, and with a call that is explained.
  func testTheRecommendedSet() async throws {
    for isExplained in [false, true] {
      for setting in SocketTest.settings {
        self.backend.reset()
        var parts = ClientParts(logger: CallLogRecorder().makeLogger(level: .debug))
        parts.metrics = CallMetrics(
          factory: self.backend,
          options: CallMetrics.Options(families: [.openTelemetry, .grpc])
        )
        parts.retryPolicy?.backoff = Backoff(base: .milliseconds(1))
        try await SocketTest.run(over: [setting], .recommended(for: parts)) { server, client, setting in
          let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoRequest>(
            path: "/flaky.Service/Get",
            streamType: .unary,
            idempotencyLevel: .noSideEffects
          )
          server.failAtFirst(method.path, failures: 2)
          var options = CallOptions()
          if isExplained { options = options.explained(by: CallExplainer()) }
          let response = await client.unary(method, .text("hello"), options: options)
          XCTAssertEqual(response.message?.payload.text, "hello", "\(setting)")
          let labels = [
            ("grpc.method", "flaky.Service/Get"), ("grpc.target", "dns:///127.0.0.1:\(server.port)"),
          ]
          let started = try self.backend.expectCounter("grpc.client.attempt.started", labels)
          XCTAssertEqual(started.totalValue, 3, "\(setting)")
          XCTAssertEqual(
            self.attempts("duration").mapValues(\.count),
            ["UNAVAILABLE": 2, "OK": 1],
            "\(setting)"
          )
          XCTAssertEqual(
            self.attempts("sent_total_compressed_message_size"),
            ["UNAVAILABLE": [9, 9], "OK": [9]],
            "\(setting)"
          )
          XCTAssertEqual(
            self.attempts("rcvd_total_compressed_message_size"),
            ["UNAVAILABLE": [0, 0], "OK": [9]],
            "\(setting)"
          )
          XCTAssertEqual(self.calls("duration").mapValues(\.count), ["OK": 1], "\(setting)")
          XCTAssertEqual(self.calls("retries"), ["": [2]], "\(setting)")
          XCTAssertEqual(self.values("rpc.client.call.duration").values.map(\.count), [1], "\(setting)")
        }
      }
    }
  }

  /// Hedges over a real server: the first answers late, the second at once.
  func testHedgesOverSockets() async throws {
    for setting in SocketTest.settings {
      self.backend.reset()
      // Of its own, since the attempts of a call may end a little after it.
      let metrics = CallMetrics(factory: self.backend, options: CallMetrics.Options(families: .grpc))
      let interceptors: [InterceptorFactory] = [{ MetricsInterceptor(metrics, config: $0) }]
      try await SocketTest.run(over: [setting], interceptors) { server, client, setting in
        let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoRequest>(
          path: "/slow.Service/Get",
          streamType: .unary,
          idempotencyLevel: .noSideEffects
        )
        server.onRaw(method.path) { request, responder in
          let body = try await request.body()
          // Until the client gives up.
          if request.attempt == 0 { return await responder.waitUntilClosed() }
          let contentType = request.record.headers.first("content-type") ?? ""
          try await responder.respond(
            headers: ["content-type": contentType],
            body: body,
            trailers: contentType.hasPrefix("application/grpc") ? ["grpc-status": "0"] : [:]
          )
        }
        var options = CallOptions()
        options.hedging = HedgingPolicy(maximumAttempts: 2, delay: .milliseconds(20))
        let response = await client.unary(method, .text("hello"), options: options)
        XCTAssertEqual(response.message?.payload.text, "hello", "\(setting)")
        // The abandoned attempt ends in a later job of the event loop, and so does the call's end hook.
        for _ in 0..<1000 where self.attempts("duration")["CANCELLED"] == nil {
          try await Task.sleep(for: .milliseconds(5))
        }
        XCTAssertEqual(self.attempts("started"), ["": [2]], "\(setting)")
        XCTAssertEqual(
          self.attempts("duration").mapValues(\.count),
          ["OK": 1, "CANCELLED": 1],
          "\(setting)"
        )
        XCTAssertEqual(self.calls("hedges"), ["": [1]], "\(setting)")
      }
    }
  }
}
