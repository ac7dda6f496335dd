import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Providers that choose a call's interceptors by its request.
final class InterceptorProviderTests: XCTestCase {
  private enum TenantKey: CallContextKey {
    static var defaultValue: String { "none" }
  }

  private struct Provider: InterceptorProvider {
    let seen: Events
    var answer: @Sendable (String) -> MethodInterceptors = { _ in [] }

    func interceptors<Input, Output>(
      for request: HTTPRequest<Input?>,
      of method: MethodSpec<Input, Output>
    ) -> MethodInterceptors {
      let message = (request.message as? Text)?.text ?? "-"
      self.seen.add(
        "\(method.path) \(request.headers.first("x-user") ?? "-") \(request.context[TenantKey.self]) \(message)"
      )
      return self.answer(message)
    }
  }

  func testItSeesHeadersContextAndTheTypedRequest() async {
    let seen = Events()
    let client = ProtocolClient.scripted(.echo()) { $0.interceptorProvider = Provider(seen: seen) }
    var options = CallOptions(headers: ["x-user": ["ann"]])
    options.context[TenantKey.self] = "blue"
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(seen.all, ["/test.Text/Unary ann blue x"])
    let called = await client.outcome(of: "y").outcome.wait()
    XCTAssertEqual(called.message, "y")
    XCTAssertEqual(seen.all.last, "/test.Text/Unary - none y")
  }

  func testAStreamHasNoMessageYet() async {
    let seen = Events()
    let client = ProtocolClient.scripted(ScriptedTransport(StreamChainTests.echo)) {
      $0.interceptorProvider = Provider(seen: seen)
    }
    let results = await client.results(sending: ["a"])
    XCTAssertEqual(results, ["headers", "a", "end ok"])
    XCTAssertEqual(seen.all, ["/test.Text/Bidi - none -"])
  }

  func testItAddsInsideAndReplaces() async {
    let probe = InterceptorProbe()
    let provider = Provider(seen: Events()) { message in
      switch message {
      case "add": [probe.factory("provided", levels: [.message])]
      case "replace": .replacing([probe.factory("provided", levels: [.message])])
      default: []
      }
    }
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [probe.factory("client", levels: [.message])]
    ) {
      $0.methodInterceptors = { _ in [probe.factory("method", levels: [.message])] }
      $0.interceptorProvider = provider
    }
    let options = CallOptions(interceptors: [probe.factory("call", levels: [.message])])
    for (message, expected) in [
      ("add", ["client", "method", "provided", "call"]), ("replace", ["provided", "call"]),
      ("none", ["client", "method", "call"]),
    ] {
      probe.removeAll()
      _ = await client.unary(.unary, Text(message), options: options)
      XCTAssertEqual(probe.events.filter { $0.hook == .request }.map(\.interceptor), expected)
    }
  }

  /// Factories of interceptors that are replaced do not run.
  func testReplacedInterceptorsAreNotMade() async {
    let made = Events()
    let provider = Provider(seen: Events()) { _ in .replacing([]) }
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        { _ in
          made.add("made")
          return TestInterceptor()
        }
      ]
    ) { $0.interceptorProvider = provider }
    _ = await client.unary(.unary, "x")
    XCTAssertEqual(made.all, [])
  }
}
