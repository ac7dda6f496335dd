internal import XCTest

@testable internal import ConnectXDS

final class ResourceNameTests: XCTestCase {
  func testOldNamesAreTakenAsTheyAre() throws {
    for text in ["a", "", "a b%", "http://x", "xds:x"] {
      let name = try ResourceName(text, of: .cluster)
      XCTAssertNil(name.authority)
      XCTAssertEqual(name.text, text)
    }
  }

  func testNormalForm() throws {
    let type = "envoy.config.cluster.v3.Cluster"
    let cases = [
      ("xdstp://a/\(type)/x", "a", "xdstp://a/\(type)/x"),
      ("xdstp://a/\(type)/x/y?c=d&a=b#f", "a", "xdstp://a/\(type)/x/y?a=b&c=d"),
      ("xdstp://a/\(type)/%41%20b?k", "a", "xdstp://a/\(type)/A%20b?k="),
      ("xdstp://a/\(type)/x?a=1&a=2&&=3", "a", "xdstp://a/\(type)/x?a=2"),
      ("xdstp:///\(type)/x", "", "xdstp:///\(type)/x"),
      ("xdstp://a/\(type)", "a", "xdstp://a/\(type)/"),
    ]
    for (text, authority, normal) in cases {
      let name = try ResourceName(text, of: .cluster)
      XCTAssertEqual(name.authority, authority)
      XCTAssertEqual(name.text, normal)
      XCTAssertEqual(try ResourceName(normal, of: .cluster), name)
    }
  }

  func testMistakes() {
    let type = "envoy.config.cluster.v3.Cluster"
    for text in [
      "xdstp:x", "xdstp:/\(type)/x", "xdstp://a/envoy.config.listener.v3.Listener/x", "xdstp://a", "xdstp://",
      "xdstp://a/\(type)/%4", "xdstp://a/\(type)/%zz", "xdstp://a/\(type)/a b", "xdstp://a/\(type)/%ff",
    ] {
      XCTAssertThrowsError(try ResourceName(text, of: .cluster), text)
    }
  }
}
