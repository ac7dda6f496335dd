import Connect
import ConnectNIO
import ConnectTesting
import Logging
import LoopbackServer
import MetricsTestKit
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

/// Interceptors before, after, and in place of the recommended ones.
final class ClientPartsEditsTests: XCTestCase {
  private struct A: Interceptor {}
  private struct B: Interceptor {}

  private let recorder = CallLogRecorder()

  /// With all parts but traces, which have no backend in this process.
  private func parts() -> ClientParts {
    var parts = ClientParts(logger: self.recorder.makeLogger(level: .debug))
    parts.metrics = CallMetrics(factory: TestMetrics())
    parts.credentials = Credentials(for: ["127.0.0.1"], configuration: .init(allowsCleartext: true)) { _ in
      AccessToken("t", expiresIn: .seconds(3600))
    }
    parts.cache = ResponseCache()
    parts.acceptedStatuses = [200]
    parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 10)
    return parts
  }

  private static func names(_ factories: [InterceptorFactory]) -> [String] {
    let config = ProtocolClientConfig(host: "http://service.test")
    return factories.map { "\(type(of: $0(config)))" }
  }

  private static func names(_ parts: ClientParts) -> [String] { self.names(.recommended(for: parts)) }

  func testEachPlace() {
    let standard = Self.names(self.parts())
    XCTAssertEqual(standard.count, 10)
    for place in self.parts().places where place.factory != nil {
      let type = place.type
      guard let index = standard.firstIndex(of: "\(type)") else { return XCTFail("\(type)") }
      var before = self.parts()
      before.insert(before: type) { _ in A() }
      before.insert(before: type) { _ in B() }
      var expected = standard
      expected.insert(contentsOf: ["A", "B"], at: index)
      XCTAssertEqual(Self.names(before), expected)

      var after = self.parts()
      after.insert(after: type) { _ in A() }
      after.insert(after: type) { _ in B() }
      expected = standard
      expected.insert(contentsOf: ["A", "B"], at: index + 1)
      XCTAssertEqual(Self.names(after), expected)

      var replaced = self.parts()
      replaced.replace(type) { _ in A() }
      expected = standard
      expected[index] = "A"
      XCTAssertEqual(Self.names(replaced), expected)

      var removed = self.parts()
      removed.remove(type)
      expected.remove(at: index)
      XCTAssertEqual(Self.names(removed), expected)
    }
    XCTAssertEqual(self.recorder.texts, [])
  }

  /// A part that is left out has a place.
  func testPlacesOfPartsThatAreLeftOut() {
    var parts = self.parts()
    parts.metrics = nil
    parts.credentials = nil
    parts.cache = nil
    parts.concurrencyLimiter = nil
    parts.insert(before: MetricsInterceptor.self) { _ in A() }
    parts.insert(after: ConcurrencyLimitInterceptor.self) { _ in B() }
    parts.replace(CacheReadInterceptor.self) { _ in A() }
    parts.insert(after: CacheReadInterceptor.self) { _ in B() }
    parts.remove(CredentialsInterceptor.self)
    XCTAssertEqual(
      Self.names(parts),
      [
        "ContextInterceptor", "A", "LoggingInterceptor", "HTTPStatusInterceptor", "A", "B",
        "RetryInterceptor",
        "CircuitBreakerInterceptor", "B",
      ]
    )
  }

  func testChangesOfOnePlaceTogether() {
    var parts = self.parts()
    parts.insert(after: RetryInterceptor.self) { _ in B() }
    parts.remove(RetryInterceptor.self)
    parts.replace(RetryInterceptor.self) { _ in MaximumRetriesInterceptor(3) }
    parts.insert(before: RetryInterceptor.self) { _ in A() }
    XCTAssertEqual(
      Self.names(parts).suffix(6),
      [
        "CacheWriteInterceptor", "A", "MaximumRetriesInterceptor", "B", "CircuitBreakerInterceptor",
        "ConcurrencyLimitInterceptor",
      ]
    )
    // A copy does not change the original, and the parts may change behind the edits.
    var copy = parts
    copy.circuitBreaker = nil
    copy.remove(ConcurrencyLimitInterceptor.self)
    XCTAssertEqual(Self.names(copy).suffix(3), ["A", "MaximumRetriesInterceptor", "B"])
    XCTAssertEqual(Self.names(parts).count, 12)
  }

  /// Around calls and around attempts.
  func testTracingStandsTwice() {
    let places = [
      PartPlace(TracingInterceptor.self, ()) { _ in { TracingInterceptor(config: $0, spans: .call) } },
      PartPlace(CircuitBreakerInterceptor.self, CircuitBreaker()) { breaker in
        { _ in CircuitBreakerInterceptor(breaker) }
      },
      PartPlace(TracingInterceptor.self, ()) { _ in { TracingInterceptor(config: $0, spans: .attempts) } },
    ]
    var parts = self.parts()
    parts.insert(before: TracingInterceptor.self) { _ in A() }
    parts.insert(after: TracingInterceptor.self) { _ in B() }
    XCTAssertEqual(
      Self.names(parts.edited(places)),
      ["A", "TracingInterceptor", "CircuitBreakerInterceptor", "TracingInterceptor", "B"]
    )
    parts.replace(TracingInterceptor.self) { _ in NoInterceptor() }
    XCTAssertEqual(
      Self.names(parts.edited(places)),
      ["A", "NoInterceptor", "CircuitBreakerInterceptor", "B"]
    )
  }

  func testATypeThatIsNotInTheSet() {
    for kind in [PartEdit.Kind.before, .after, .inPlace] {
      var parts = ClientParts(logger: self.recorder.makeLogger())
      let problem = parts.edit(kind, RequestInterceptor.self, [{ _ in A() }])
      XCTAssertEqual(
        problem,
        "RequestInterceptor is not in the recommended set, and has no place there. The set has ContextInterceptor, "
          + "TracingInterceptor, MetricsInterceptor, LoggingInterceptor, HTTPStatusInterceptor, CredentialsInterceptor, "
          + "CookieInterceptor, CacheReadInterceptor, CacheWriteInterceptor, RetryInterceptor, "
          + "CircuitBreakerInterceptor, ConcurrencyLimitInterceptor"
      )
      // It is not lost.
      XCTAssertEqual(
        Self.names(parts),
        ["ContextInterceptor", "LoggingInterceptor", "RetryInterceptor", "CircuitBreakerInterceptor", "A"]
      )
    }
  }

  /// Inside of the credentials it sees the token, outside it does not; and the one in place of the retries decides.
  func testOverSockets() async throws {
    struct Reader: Interceptor {
      let name: String
      let seen: Noted<String>
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(updateRequest: { [name, seen] request in
          seen.add("\(name) \(request.headers.first("authorization") ?? "none")")
        })
      }
    }
    struct Again: Interceptor {
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(updateResponse: { $0.code == .unavailable ? .retry(after: .zero) : .proceed })
      }
    }
    let seen = Noted<String>()
    var parts = self.parts()
    parts.insert(before: CredentialsInterceptor.self) { _ in Reader(name: "outside", seen: seen) }
    parts.insert(after: CredentialsInterceptor.self) { _ in Reader(name: "inside", seen: seen) }
    parts.replace(RetryInterceptor.self) { _ in Again() }
    let path = "/flaky.Service/Get"
    let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoRequest>(
      path: path,
      streamType: .unary
    )
    try await SocketTest.run(.recommended(for: parts)) { server, client, _ in
      // As retries go, not again by the rules of the recommended ones: the method may have side effects.
      server.failAtFirst(path, failures: 2)
      let response = await client.unary(method, .text("x"))
      XCTAssertEqual(response.message?.payload.text, "x")
      XCTAssertEqual(server.requests.count, 3)
    }
    XCTAssertEqual(seen.value.count, 3 * 2 * 3)
    XCTAssertEqual(Set(seen.value), ["outside none", "inside Bearer t"])
  }
}
