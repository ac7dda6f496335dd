import Connect
import ConnectTesting
import Logging
import XCTest

/// What a client's log says of rules that its calls do not follow.
final class RuleWarningTests: XCTestCase {
  private struct Follower: Interceptor, RetryRulesFollowing {}

  private struct Handler: LogHandler {
    let events: Events
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      self.events.add("\(event.message) \(event.metadata?["rpc.method"].map { "\($0)" } ?? "?")")
    }
  }

  /// - Parameter followed: The paths of the methods whose calls have an interceptor for retries.
  private func warnings(
    _ rules: MethodRules,
    followed: Set<String> = [],
    retries: Int = 3
  ) async -> [String] {
    let log = Events()
    let transport = ScriptedTransport { stream in
      if case .complete = stream.request.body { return stream.reply("\"x\"") }
      stream.respondStream()
      stream.endStream()
    }
    transport.serviceRules.update { _ in rules }
    let client = ProtocolClient.scripted(transport) {
      $0.logger = Logger(label: "test") { _ in Handler(events: log) }
      $0.retries.maximumRetries = retries
      $0.methodInterceptors = { method in
        .adding(followed.contains(method.path) ? [{ _ in Follower() }] : [])
      }
    }
    for _ in 0..<3 {
      for method in [TextMethod.read, .unary] { _ = await client.unary(method, "x") }
      do {
        for try await _ in client.serverStream(.serverStream, "x").messages {}
      } catch { XCTFail("\(error)") }
    }
    return log.all
  }

  private func retry(_ attempts: Int, source: String = "service config") -> MethodRules {
    MethodRules(
      retry: RetryRules(
        maximumAttempts: attempts,
        initialBackoff: .seconds(1),
        maximumBackoff: .seconds(1),
        backoffMultiplier: 1,
        codes: [.unavailable]
      ),
      attemptsSource: source
    )
  }

  private let all: Set = ["/test.Text/Read", "/test.Text/Unary", "/test.Text/ServerStream"]

  func testRetriesThatNoInterceptorMakes() async {
    let text =
      "the service config has a retry policy, which no interceptor follows; add RetryInterceptor of ConnectInterceptors"
    let none = await self.warnings(self.retry(2))
    XCTAssertEqual(none, ["\(text) /test.Text/Read"])
    let some = await self.warnings(self.retry(2), followed: ["/test.Text/Read"])
    XCTAssertEqual(some, ["\(text) /test.Text/Unary"])
    let followed = await self.warnings(self.retry(4), followed: self.all)
    XCTAssertEqual(followed, [])
    let others = await self.warnings(MethodRules(timeout: .seconds(1)))
    XCTAssertEqual(others, [])
  }

  /// A route and the service config may both have attempts for a method.
  func testRetriesOfRoutes() async {
    let log = Events()
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    let client = ProtocolClient.scripted(transport) {
      $0.logger = Logger(label: "test") { _ in Handler(events: log) }
    }
    let route = OneRoute(rules: self.retry(2, source: "route"))
    transport.serviceRules.update(routing: { _ in route })
    _ = await client.unary(.read, "x")
    let end = "has a retry policy, which no interceptor follows; add RetryInterceptor of ConnectInterceptors"
    XCTAssertEqual(log.all, ["the route \(end) /test.Text/Read"])
  }

  /// The path was checked with the rules of the service config, which are other ones.
  func testRetriesOfARouteBesideThoseOfTheServiceConfig() async {
    let log = Events()
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    let client = ProtocolClient.scripted(transport) {
      $0.logger = Logger(label: "test") { _ in Handler(events: log) }
    }
    for rules in [self.retry(1), self.retry(2, source: "route")] {
      transport.serviceRules.update(routing: { _ in OneRoute(rules: rules) })
      _ = await client.unary(.read, "x")
    }
    XCTAssertEqual(log.all.count, 1)
  }

  private final class OneRoute: CallRouter {
    let rules: MethodRules

    init(rules: MethodRules) {
      self.rules = rules
    }

    func rules(forHeaders headers: Headers) -> CallRules { .method(self.rules) }
  }

  func testMoreAttemptsThanTheClientAllows() async {
    let warnings = await self.warnings(self.retry(5), followed: self.all)
    XCTAssertEqual(
      warnings,
      [
        "the service config allows 5 attempts, but a call of this client makes no more than 3 retries: "
          + "ProtocolClientConfig.Retries.maximumRetries /test.Text/Read"
      ]
    )
    let enough = await self.warnings(self.retry(5), followed: self.all, retries: 4)
    XCTAssertEqual(enough, [])
  }

  func testStreamsThatAreToHedge() async {
    let policy = HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), allowsSideEffects: true)
    let warnings = await self.warnings(MethodRules(hedging: policy))
    XCTAssertEqual(
      warnings,
      [
        "the service config has a hedging policy, but streams do not hedge; give their methods a retry policy "
          + "/test.Text/ServerStream"
      ]
    )
  }
}
