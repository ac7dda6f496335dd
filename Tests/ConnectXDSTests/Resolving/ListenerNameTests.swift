import Connect
import XCTest

@testable import ConnectXDS

final class ListenerNameTests: XCTestCase {
  private func bootstrap(_ template: String = "%s") -> XDSBootstrap {
    XDSBootstrap(
      servers: [],
      authorities: [
        "a.test": .init(),
        "b.test": .init(
          clientListenerTemplate: "xdstp://b.test/envoy.config.listener.v3.Listener/client/%s?x=1"
        ),
      ],
      defaultClientListenerTemplate: template
    )
  }

  func testNames() throws {
    let cases: [(authority: String?, name: String, template: String, resource: String, host: String)] = [
      (nil, "orders", "%s", "orders", "orders"),
      (nil, "a b/c%", "%s", "a b/c%", "c%"),
      (nil, "orders:80", "l/%s/%s%", "l/orders:80/orders:80%", "orders:80"),
      (nil, "a b/é[", "xdstp://x/L/%s", "xdstp://x/L/a%20b/%C3%A9%5B", "é["),
      ("a.test", "dir/orders", "%s", "xdstp://a.test/envoy.config.listener.v3.Listener/dir/orders", "orders"),
      ("b.test", "o?", "%s", "xdstp://b.test/envoy.config.listener.v3.Listener/client/o%3F?x=1", "o?"),
    ]
    for (authority, name, template, resource, host) in cases {
      let found = try ListenerName(authority: authority, name: name, self.bootstrap(template))
      XCTAssertEqual(found.resource, resource)
      XCTAssertEqual(found.host, host)
    }
  }

  func testUnknownAuthorities() {
    XCTAssertThrowsError(try ListenerName(authority: "c.test", name: "orders", self.bootstrap())) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
      XCTAssertTrue("\(error)".contains("no authority \"c.test\""), "\(error)")
    }
  }
}
