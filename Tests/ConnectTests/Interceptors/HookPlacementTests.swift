import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Where byte hooks stand that need to see what all others make of a request.
final class HookPlacementTests: XCTestCase {
  private func hooks(_ name: String, _ placement: HookPlacement, _ events: Events) -> InterceptorFactory {
    TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(
        updateRequest: { request in
          events.add("\(name) >")
          request.headers["x-\(name)"] = ["added"]
        },
        updateResponse: { _ in
          events.add("\(name) <")
          return .proceed
        }
      ).placed(placement)
    }
  }

  private func order(_ listed: [(String, HookPlacement)]) async -> String {
    let events = Events()
    let client = ProtocolClient.scripted(
      ScriptedTransport.echo(),
      interceptors: listed.map { self.hooks($0.0, $0.1, events) }
    )
    _ = await client.unary(.unary, "x")
    let all = events.all
    XCTAssertEqual(
      Array(all.suffix(listed.count)),
      all.prefix(listed.count).reversed().map { $0.replacing(">", with: "<") }
    )
    return all.prefix(listed.count).map { $0.dropLast(2) }.joined(separator: " ")
  }

  func testOrder() async {
    let cases: [([(String, HookPlacement)], String)] = [
      ([("a", .asListed), ("b", .asListed), ("c", .asListed)], "a b c"),
      ([("a", .userIndependent), ("b", .asListed), ("c", .userIndependent)], "a b c"),
      ([("a", .asListed), ("cache", .innermost), ("b", .asListed)], "a b cache"),
      (
        [
          ("a", .userIndependent), ("read", .innermost), ("b", .asListed), ("write", .innermost),
          ("retry", .userIndependent), ("c", .asListed), ("d", .asListed), ("limit", .userIndependent),
        ],
        "a b c d read write retry limit"
      ),
    ]
    for (listed, expected) in cases {
      let order = await self.order(listed)
      XCTAssertEqual(order, expected)
    }
  }

  /// An innermost hook sees what one has added that is listed behind it, in each attempt.
  func testAnInnermostHookSeesAllHeaders() async {
    let seen = Events()
    let innermost = TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(
        updateRequest: { request in seen.add(request.headers["x-user"].joined()) }
      ).placed(.innermost)
    }
    let user = TestInterceptor.make { interceptor in
      var attempts = 0
      interceptor.unaryBytes = UnaryFunction(
        updateRequest: { request in
          attempts += 1
          request.headers["x-user"] = ["ada \(attempts)"]
        },
        updateResponse: { _ in attempts < 2 ? .retry(after: .zero) : .proceed }
      )
    }
    let client = ProtocolClient.scripted(ScriptedTransport.echo(), interceptors: [innermost, user])
    _ = await client.unary(.unary, "x")
    XCTAssertEqual(seen.all, ["ada 1", "ada 2"])
  }

  /// A response says with which headers its request went to the network.
  func testTheRequestOfAResponse() async {
    let seen = Events()
    let outer = TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(
        updateRequest: { request in request.headers["x-outer"] = ["1"] },
        updateResponse: { response in
          let names = response.request?.headers.map(\.name).sorted().joined(separator: " ") ?? "none"
          seen.add("\(response.code): \(names)")
          return .proceed
        }
      )
    }
    let answers = TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(
        requestFunction: { _, proceed in proceed.answer(HTTPResponse()) }
      )
    }
    let events = Events()
    for inner in [self.hooks("inner", .asListed, events), answers] {
      let client = ProtocolClient.scripted(ScriptedTransport.echo(), interceptors: [outer, inner])
      _ = await client.unary(.unary, "x")
    }
    XCTAssertEqual(seen.all, ["ok: x-inner x-outer", "ok: none"])
  }
}
