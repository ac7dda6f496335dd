import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import Logging
import LoopbackServer
import SwiftProtobuf
import XCTest

/// The examples of the module's articles, in use; those of some articles have tests of their own.
final class DocumentedExampleTests: XCTestCase {
  private let seen = Observed<Headers>([:])

  /// A server in memory that says what it was told.
  private func makeTransport() -> InMemoryTransport {
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { [seen] request, context in
      seen.update { $0 = context.requestHeaders }
      return .with { $0.payload = request.payload }
    }
    return transport
  }

  private func echo(_ config: ProtocolClientConfig, _ options: CallOptions = CallOptions()) async throws {
    let client = ProtocolClient(httpClient: self.makeTransport(), config: config)
    _ = try await client.unary(TestMethods.echo, .init(), options: options).get()
  }

  func testRecommended() async throws {
    let credentials = Credentials(for: ["api.example.com"]) { _ in AccessToken("t0k3n") }

    var parts = ClientParts(logger: Logger(label: "calls"))
    parts.credentials = credentials
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: .recommended(for: parts),
      contextPropagators: [ServiceContextPropagator()]
    )

    try await self.echo(config)
    XCTAssertEqual(self.seen.value["authorization"], ["Bearer t0k3n"])
    XCTAssertEqual(self.seen.value["x-request-id"].count, 1)
  }

  func testHedging() async throws {
    var config = ProtocolClientConfig(host: "https://api.example.com")

    config.hedging = { method in
      method.name == "Read" ? HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(20)) : nil
    }

    try await self.echo(config)
  }

  func testObservability() async throws {
    let metrics = CallMetrics()
    let log = CallLog(
      logger: Logger(label: "calls"),
      options: CallLog.Options(sampling: LogSampling(first: 100, thereafter: 100), logsHeaders: true)
    )
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [
        { TracingInterceptor(config: $0) },
        { MetricsInterceptor(metrics, config: $0) },
        { LoggingInterceptor(log, config: $0) },
      ]
    )

    try await self.echo(config)
  }

  func testContext() async throws {
    var options = CallOptions()
    options.context.requestID = "4711"
    options.context.baggage["tenant"] = "acme"

    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in ContextInterceptor() }]
    )
    try await self.echo(config, options)
    XCTAssertEqual(self.seen.value["x-request-id"], ["4711"])
    XCTAssertEqual(self.seen.value["baggage"], ["tenant=acme"])
  }

  func testContextOfTheTask() async throws {
    let request = "a request that is handled"
    let headers: Headers = ["connect-timeout-ms": ["5000"], "x-request-id": ["4711"]]
    func answer(_ request: String) async throws {
      let config = ProtocolClientConfig(
        host: "https://api.example.com",
        interceptors: [{ _ in ContextInterceptor() }]
      )
      try await self.echo(config)
    }

    try await CallContext.withValues {
      $0.read(requestHeaders: headers)
    } operation: {
      try await answer(request)
    }

    XCTAssertEqual(self.seen.value["x-request-id"], ["4711"])
    let timeout = try XCTUnwrap(self.seen.value.first("connect-timeout-ms").flatMap { Int($0) })
    XCTAssertLessThanOrEqual(timeout, 4990)
  }

  func testExplanation() async throws {
    let client = ProtocolClient(
      httpClient: self.makeTransport(),
      config: ProtocolClientConfig(host: "https://api.example.com")
    )
    let say = TestMethods.echo
    let request = Connect_Test_V1_EchoRequest()
    var text = ""
    func print(_ explanation: CallExplanation) { text = explanation.description }

    let explainer = CallExplainer()
    _ = await client.unary(say, request, options: CallOptions().explained(by: explainer))
    print(explainer.explanation)

    XCTAssertTrue(text.hasPrefix("connect.test.v1.TestService/Echo at https://api.example.com"), text)
  }
}
