import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Calls that get their rules one by one, from routes.
final class CallRouterTests: XCTestCase {
  private static let origin = Origin(scheme: .http, host: "scripted.test", port: 80)

  /// By the header `to`. Counts its calls.
  private final class Router: CallRouter {
    let clusters: [String: CallDestination]
    let rules: MethodRules
    let events: Events

    init(_ names: [String], _ rules: MethodRules = MethodRules(), _ events: Events = Events()) {
      var clusters: [String: CallDestination] = [:]
      for name in names {
        clusters[name] = CallDestination(
          cluster: CallCluster(name, of: CallRouterTests.origin) { events.add("release \(name)") }
        )
      }
      self.clusters = clusters
      self.rules = rules
      self.events = events
    }

    func rules(forHeaders headers: Headers) -> CallRules {
      self.events.add("route")
      guard let destination = headers.first("to").flatMap({ self.clusters[$0] }) else {
        return .refused(ConnectError(code: .unavailable, message: "no route"))
      }
      return .route(self.rules, destination)
    }
  }

  private func clusters(_ transport: ScriptedTransport) -> [String?] {
    transport.streams.map { $0.request.destination?.cluster?.name }
  }

  func testEachCallIsRouted() async {
    let events = Events()
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    let router = Router(["a", "b"], MethodRules(timeout: .seconds(5)), events)
    transport.serviceRules.update(routing: { _ in router })
    let client = ProtocolClient.scripted(transport)
    for name in ["a", "b", "a"] {
      let response = await client.unary(.unary, "x", options: CallOptions(headers: ["to": [name]]))
      XCTAssertEqual(response.message, "x")
    }
    XCTAssertEqual(self.clusters(transport), ["a", "b", "a"])
    XCTAssertEqual(transport.streams.map { $0.request.headers["connect-timeout-ms"] }.last, ["5000"])
    XCTAssertEqual(events.all, ["route", "route", "route"])
    let same = transport.streams.filter {
      $0.request.destination === transport.streams[0].request.destination
    }
    XCTAssertEqual(same.count, 2, "calls share what the route has prepared")
  }

  func testARefusalEndsTheCallBeforeItsHooks() async {
    let events = Events()
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    let router = Router([])
    transport.serviceRules.update(routing: { _ in router })
    let noting = TestInterceptor.make { interceptor in
      interceptor.call = CallFunction(
        requestFunction: { _ in events.add("request") },
        retryFunction: { _ in
          events.add("retry")
          return RetryRequest()
        },
        endFunction: { events.add("end \($0.error?.code ?? .ok)") }
      )
    }
    let client = ProtocolClient.scripted(transport, interceptors: [noting])
    for waits in [false, true] {
      let response = await client.unary(.unary, "x", options: CallOptions(waitForReady: waits))
      XCTAssertEqual(response.error?.message, "no route")
    }
    XCTAssertEqual(transport.streams.count, 0)
    XCTAssertEqual(events.all, ["end unavailable", "end unavailable"])
  }

  func testCallsThatWaitAreRouted() async {
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    transport.serviceRules.expectUpdate()
    let client = ProtocolClient.scripted(transport)
    let outcome = client.outcome(of: "x", options: CallOptions(headers: ["to": ["b"]])).outcome
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.count, 0)
    let router = Router(["a", "b"])
    transport.virtualExecutor.sync { transport.serviceRules.update(routing: { _ in router }) }
    let response = await outcome.wait()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(self.clusters(transport), ["b"])
  }

  func testAnAuthorityAndACluster() async {
    let transport = ScriptedTransport { $0.reply("\"x\"") }
    let router = Router(["a"])
    transport.serviceRules.update(routing: { _ in router })
    let client = ProtocolClient.scripted(transport)
    let options = CallOptions(headers: ["to": ["a"]], authority: "other.test")
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(transport.streams.map(\.request.authority), ["other.test"])
    XCTAssertEqual(self.clusters(transport), ["a"])
  }

  func testRequestsThatFollow() {
    let cluster = CallCluster("a", of: Self.origin) {}
    let destination = CallDestination(cluster: cluster, hash: 7)
    var request = HTTPStreamRequest(method: .post, target: "/a", headers: [:], body: .streamed)
    request.follow(nil)
    XCTAssertNil(request.destination)
    request.follow(destination)
    XCTAssertTrue(request.destination === destination)
    request.authority = "x.test"
    XCTAssertEqual(request.authority, "x.test")
    XCTAssertTrue(request.destination?.cluster === cluster)
    XCTAssertEqual(request.destination?.hash, 7)
    request.follow(destination)
    XCTAssertEqual(request.authority, "x.test")
    request.authority = nil
    XCTAssertNil(request.authority)
    XCTAssertTrue(request.destination?.cluster === cluster)
    request.follow(nil)
    XCTAssertNil(request.destination)
    request.authority = "x.test"
    request.follow(nil)
    XCTAssertEqual(request.authority, "x.test")
    request.follow(destination)
    XCTAssertEqual(request.authority, "x.test")
    XCTAssertTrue(request.destination?.cluster === cluster)
  }

  /// What rules hold is released when they are replaced.
  func testClustersAreReleased() {
    let events = Events()
    let rules = ServiceRules()
    rules.update(routing: { _ in Router(["a"], MethodRules(), events) })
    guard case .route = rules.rules(for: MethodInfo(path: "/a/b", streamType: .unary), ["to": ["a"]]) else {
      return XCTFail("no route")
    }
    XCTAssertEqual(events.count("release a"), 0)
    rules.update(nil)
    XCTAssertEqual(events.count("release a"), 1)
  }
}
