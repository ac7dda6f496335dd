import Connect
import ConnectInterceptors
import ConnectTesting
import Logging
import LoopbackServer
import SwiftProtobuf
import XCTest

/// What does not fit together in a client's configuration is said in its log, once.
final class ConfigurationWarningTests: XCTestCase {
  private func warnings(
    host: String = "https://api.test:8443",
    retries: Int = 3,
    _ interceptors: InterceptorFactory...
  ) async -> [String] {
    let recorder = CallLogRecorder()
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, _ in .init() }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: host,
        interceptors: interceptors,
        retries: .init(maximumRetries: retries),
        logger: recorder.makeLogger(level: .warning)
      )
    )
    XCTAssertEqual(recorder.texts, [])
    for _ in 0..<3 {
      let code = await client.unary(TestMethods.echo, .init()).code
      XCTAssertEqual(code, .ok)
    }
    for line in recorder.lines { XCTAssertEqual(line.level, .warning) }
    return recorder.texts
  }

  func testMoreAttemptsThanTheClientAllows() async {
    let budget = RetryBudget()
    func retrying(_ attempts: Int) -> InterceptorFactory {
      { _ in RetryInterceptor(policy: RetryPolicy(maximumAttempts: attempts), budget: budget) }
    }
    let fitting = await self.warnings(retrying(4))
    XCTAssertEqual(fitting, [])
    let none = await self.warnings(retries: .min, retrying(.min))
    XCTAssertEqual(none, [])
    let tooMany = await self.warnings(retrying(10))
    XCTAssertEqual(
      tooMany,
      [
        "RetryPolicy.maximumAttempts is 10, but a call of this client makes no more than 3 retries: "
          + "ProtocolClientConfig.Retries.maximumRetries"
      ]
    )
  }

  func testCredentialsForOtherHosts() async {
    func showing(_ hosts: String...) -> InterceptorFactory {
      let credentials = Credentials(for: hosts) { _ in AccessToken("t") }
      return { _ in CredentialsInterceptor(credentials) }
    }
    let fitting = await self.warnings(showing("other.test", "api.test"))
    XCTAssertEqual(fitting, [])
    let below = await self.warnings(showing("*.test"))
    XCTAssertEqual(below, [])
    let unix = await self.warnings(host: "unix:/run/api.sock", showing("/run/api.sock"))
    XCTAssertEqual(unix, [])
    let other = await self.warnings(showing("api.example.com", "*.example.org"))
    XCTAssertEqual(
      other,
      [
        "the credentials for api.example.com, *.example.org do not go to https://api.test:8443, the client's host: "
          + "its calls go without them"
      ]
    )
    // With the port, which is not part of the name.
    let port = await self.warnings(showing("api.test:8443"))
    XCTAssertEqual(port.count, 1)
  }

  /// Credentials of a process are for some of its clients. Other interceptors are checked as those of a client.
  func testInterceptorsOfAllClients() async throws {
    let credentials = Credentials(for: ["other.test"]) { _ in AccessToken("t") }
    let budget = RetryBudget()
    try await ClientRegistry.$current.withValue(ClientRegistry()) {
      try ClientSystem.bootstrap(
        interceptors: [
          { _ in CredentialsInterceptor(credentials) },
          { _ in RetryInterceptor(policy: RetryPolicy(maximumAttempts: 10), budget: budget) },
        ],
        includingTestDoubles: true
      )
      let warnings = await self.warnings()
      XCTAssertEqual(warnings.count, 1)
      XCTAssertEqual(warnings.first?.hasPrefix("RetryPolicy"), true)
      let ofClient = await self.warnings { _ in CredentialsInterceptor(credentials) }
      XCTAssertEqual(ofClient.count, 2)
    }
  }
}
