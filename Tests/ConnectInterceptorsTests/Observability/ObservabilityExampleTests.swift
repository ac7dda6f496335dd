import Connect
import ConnectInterceptors
import ConnectTesting
import Logging
import LoopbackServer
import SwiftProtobuf
import XCTest

/// The README's example, so that it compiles and does what is said.
final class ObservabilityExampleTests: XCTestCase {
  func testTheExample() async throws {
    let logger = CallLogRecorder()
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, _ in Connect_Test_V1_EchoResponse() }

    let metrics = CallMetrics()
    let log = CallLog(
      logger: logger.makeLogger(),
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

    let client = ProtocolClient(httpClient: transport, config: config)
    _ = try await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()).get()
    XCTAssertEqual(logger.texts, ["call started", "call completed"])
  }
}
