import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import CoreMetrics
import LoopbackServer
import MetricsTestKit
import SwiftProtobuf
import Synchronization
import XCTest

final class MetricsInterceptorTests: XCTestCase {
  private let backend = TestMetrics()

  private func metrics(
    _ service: ObservedService,
    _ options: CallMetrics.Options = .defaults
  ) -> CallMetrics {
    CallMetrics(factory: self.backend, options: options, clock: service.executor.clock)
  }

  /// The durations in seconds by the dimensions as text.
  private var recorded: [String: [Double]] {
    Dictionary(
      uniqueKeysWithValues: self.backend.timers.map { timer in
        XCTAssertEqual(timer.label, "rpc.client.call.duration")
        return (
          timer.dimensions.map { "\($0)=\($1)" }.joined(separator: " "),
          timer.values.map { Double($0) / 1e9 }
        )
      }
    )
  }

  private let echo = "rpc.system.name=connectrpc rpc.method=connect.test.v1.TestService/Echo"
  private let server = "server.address=service.test server.port=8080"

  func testDurationsByOutcome() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service)
    let client = service.client({ MetricsInterceptor(metrics, config: $0) })
    try await service.echo("hello", by: client)
    try await service.echo("hello", by: client)
    try await service.echo("fail:not_found", by: client)
    XCTAssertEqual(
      self.recorded,
      [
        "\(self.echo) \(self.server)": [1, 1],
        "\(self.echo) rpc.response.status_code=not_found error.type=not_found \(self.server)": [1],
      ]
    )
  }

  func testGRPCHasNamesOfItsOwn() async throws {
    for networkProtocol in [NetworkProtocol.grpc, .grpcWeb] {
      self.backend.reset()
      let service = ObservedService(networkProtocol)
      let metrics = self.metrics(service, CallMetrics.Options(includesServer: false))
      let client = service.client({ MetricsInterceptor(metrics, config: $0) })
      try await service.echo("hello", by: client)
      try await service.echo("fail:canceled", by: client)
      let method = "rpc.system.name=grpc rpc.method=connect.test.v1.TestService/Echo"
      XCTAssertEqual(
        self.recorded,
        [
          "\(method) rpc.response.status_code=OK": [1],
          "\(method) rpc.response.status_code=CANCELLED error.type=CANCELLED": [1],
        ]
      )
    }
  }

  func testACallIsOneWithAllItsAttempts() async throws {
    for level in RetryWhenUnavailable.Level.allCases {
      self.backend.reset()
      let service = ObservedService()
      let metrics = self.metrics(service, CallMetrics.Options(includesServer: false))
      let client = service.client(
        { MetricsInterceptor(metrics, config: $0) },
        { _ in RetryWhenUnavailable(level: level) }
      )
      try await service.echo("flaky", by: client)
      XCTAssertEqual(self.recorded, [self.echo: [4]], "\(level)")
    }
  }

  func testItCountsCallsWhereverItStands() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service, CallMetrics.Options(includesServer: false))
    let client = service.client(
      { _ in RetryWhenUnavailable(level: .messages) },
      { MetricsInterceptor(metrics, config: $0) }
    )
    try await service.echo("flaky", by: client)
    XCTAssertEqual(self.recorded, [self.echo: [4]])
  }

  func testDeadlineAndCancellation() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service, CallMetrics.Options(includesServer: false))
    let client = service.client({ MetricsInterceptor(metrics, config: $0) })
    try await service.echo("hello", by: client, options: CallOptions(timeout: .milliseconds(250)))
    client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()) { _ in }.cancel()
    let stream = client.bidirectionalStream(TestMethods.converse)
    service.executor.runUntilIdle()
    service.executor.advance(by: .milliseconds(500))
    stream.cancel()
    service.executor.runUntilIdle()
    let converse = "rpc.system.name=connectrpc rpc.method=connect.test.v1.TestService/Converse"
    XCTAssertEqual(
      self.recorded,
      [
        "\(self.echo) rpc.response.status_code=deadline_exceeded error.type=deadline_exceeded": [0.25],
        "\(self.echo) rpc.response.status_code=canceled error.type=canceled": [0],
        "\(converse) rpc.response.status_code=canceled error.type=canceled": [0.5],
      ]
    )
  }

  func testStreams() async throws {
    let service = ObservedService()
    let options = CallMetrics.Options(includesServer: false, dimensions: [("team", "billing")])
    let metrics = self.metrics(service, options)
    let client = service.client(
      { MetricsInterceptor(metrics, config: $0) },
      { _ in RetryWhenUnavailable() }
    )
    try await service.converse(["flaky", "a", "b"], by: client)
    XCTAssertEqual(
      self.recorded,
      ["rpc.system.name=connectrpc rpc.method=connect.test.v1.TestService/Converse team=billing": [5]]
    )
  }

  func testSocketsOfTheFileSystemHaveNoPort() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service)
    let client = service.client(host: "unix:/tmp/service.sock", { MetricsInterceptor(metrics, config: $0) })
    try await service.echo("hello", by: client)
    XCTAssertEqual(self.recorded, ["\(self.echo) server.address=/tmp/service.sock": [1]])
  }

  /// Methods of a proxy may be made up by its callers.
  func testManyMethodsDoNotMakeManyTimers() async throws {
    let service = ObservedService()
    let metrics = self.metrics(service, CallMetrics.Options(maximumMethods: 3))
    let client = service.client({ MetricsInterceptor(metrics, config: $0) })
    try await service.executor.lettingTimePass {
      for number in 0..<100 {
        let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
          path: "/a.B/M\(number)",
          streamType: .unary
        )
        _ = await client.unary(method, Connect_Test_V1_EchoRequest())
      }
    }
    XCTAssertEqual(self.recorded.count, 4)
    let other =
      "rpc.system.name=connectrpc rpc.method=_OTHER rpc.response.status_code=unimplemented "
      + "error.type=unimplemented"
    XCTAssertEqual(self.recorded[other]?.count, 97)
  }

  func testTimersAreMadeOncePerMethodAndCode() async throws {
    let service = ObservedService()
    let counting = CountingFactory()
    let metrics = CallMetrics(factory: counting, clock: service.executor.clock)
    let client = service.client({ MetricsInterceptor(metrics, config: $0) })
    try await service.executor.lettingTimePass {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<1000 {
          group.addTask { _ = await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()) }
        }
      }
    }
    XCTAssertEqual(counting.backend.timers.first?.values.count, 1000)
    XCTAssertEqual(counting.timerCount, 1)
  }

  func testWithoutABackendThereAreNoHooks() {
    let config = ProtocolClientConfig(host: "http://service.test")
    let interceptor = MetricsInterceptor(CallMetrics(), config: config)
    XCTAssertNil(interceptor.unaryMessageFunction(TestMethods.echo).requestFunction)
    XCTAssertNil(interceptor.unaryMessageFunction(TestMethods.echo).responseFunction)
    XCTAssertNil(interceptor.streamMessageFunction(TestMethods.converse).streamResultFunction)
  }

  func testRealServer() async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient()
    let metrics = CallMetrics(factory: self.backend)
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        interceptors: [{ MetricsInterceptor(metrics, config: $0) }]
      )
    )
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<1000 {
        group.addTask { _ = try await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()).get() }
      }
      try await group.waitForAll()
    }
    XCTAssertEqual(
      self.recorded.mapValues(\.count),
      ["\(self.echo) server.address=127.0.0.1 server.port=\(server.port)": 1000]
    )
    XCTAssertTrue(self.recorded.values.joined().allSatisfy { $0 > 0 && $0 < 60 })
    await httpClient.shutdown()
    await server.stop()
  }
}

/// Counts the timers that it makes.
private final class CountingFactory: MetricsFactory {
  let backend = TestMetrics()
  private let made = Atomic(0)

  var timerCount: Int { self.made.load(ordering: .relaxed) }

  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    self.made.add(1, ordering: .relaxed)
    return self.backend.makeTimer(label: label, dimensions: dimensions)
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    self.backend.makeCounter(label: label, dimensions: dimensions)
  }

  func makeRecorder(
    label: String,
    dimensions: [(String, String)],
    aggregate: Bool
  ) -> any RecorderHandler {
    self.backend.makeRecorder(label: label, dimensions: dimensions, aggregate: aggregate)
  }

  func destroyCounter(_ handler: any CounterHandler) { self.backend.destroyCounter(handler) }
  func destroyRecorder(_ handler: any RecorderHandler) { self.backend.destroyRecorder(handler) }
  func destroyTimer(_ handler: any TimerHandler) { self.backend.destroyTimer(handler) }
}
