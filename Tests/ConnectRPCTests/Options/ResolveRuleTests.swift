import ConnectChannels
import XCTest

@testable import connectrpc

final class ResolveRuleTests: XCTestCase {
  func testNames() throws {
    let rule = try ResolveRule("A.example=10.0.0.1,[::1]:8443,10.0.0.2:1", port: 443)
    XCTAssertEqual(rule.addresses.map(\.description), ["10.0.0.1:443", "[::1]:8443", "10.0.0.2:1"])
    for name in ["a.example", "A.EXAMPLE", "a.example."] {
      XCTAssertTrue(rule.applies(to: ServerName(name: name, port: 443)), name)
    }
    XCTAssertFalse(rule.applies(to: ServerName(name: "b.example", port: 443)))
  }

  func testBlanks() throws {
    let rule = try ResolveRule(" a.example = 10.0.0.1 ,\t[::1]:8443 , ", port: 443)
    XCTAssertEqual(rule.addresses.map(\.description), ["10.0.0.1:443", "[::1]:8443"])
    XCTAssertTrue(rule.applies(to: ServerName(name: "a.example", port: 443)))
  }

  func testWhatIsNoRule() {
    for text in [
      "", "a", "a=", "a=,", "=10.0.0.1", "a=nowhere", " = 10.0.0.1", "a= , ", "a=10.0.0.1,::1",
      "a=10.0.0.1:99999",
    ] {
      XCTAssertThrowsError(try ResolveRule(text, port: 80), text) { XCTAssertEqual(Failure($0).exitCode, 64) }
    }
  }
}
