import Connect
import ConnectChannels
import XCTest

@testable import ConnectNIO

final class ProxySelectionTests: XCTestCase {
  private typealias Selection = NIOHTTPClient.Configuration.ProxySelection

  func testOffByDefault() throws {
    XCTAssertEqual(NIOHTTPClient.Configuration.defaults.proxy, .off)
    let settings = Selection.off.settings { _ in "http://proxy:1" }
    XCTAssertEqual(try settings.get(), ProxySettings(proxy: nil))
  }

  func testEnvironment() throws {
    let variables = ["https_proxy": "http://us:secret@proxy:3128", "NO_PROXY": "localhost,10.0.0.0/8"]
    let settings = try Selection.environment.settings { variables[$0] }.get()
    XCTAssertEqual(settings.proxy(host: "server", port: 443)?.description, "http://us:***@proxy:3128")
    XCTAssertNil(settings.proxy(host: "10.1.2.3", port: 443))
    XCTAssertNil(try Selection.environment.settings { _ in nil }.get().proxy)
  }

  func testGivenProxy() throws {
    let proxy = try Proxy("socks5://proxy")
    let settings = try Selection.proxy(proxy, exceptions: NoProxyList(".local")).settings { _ in
      "http://other:1"
    }.get()
    XCTAssertEqual(settings.proxy(host: "server", port: 443), proxy)
    XCTAssertNil(settings.proxy(host: "printer.local", port: 443))
  }

  /// Calls fail with what is wrong and what to write; unix origins have no proxy, so they are not concerned.
  func testSettingsThatCannotBeUsed() async throws {
    let cases: [(selection: Selection, variables: [String: String], text: String)] = [
      (
        .environment, ["HTTPS_PROXY": "ftp://x"],
        "the environment variable HTTPS_PROXY: the proxy cannot be used"
      ),
      (.environment, ["http_proxy": "https://us:secret@x"], "write http://HOST:PORT"),
      (.environment, ["grpc_proxy": "http://us:secret/@x"], "write / as %2F"),
      (.proxy(.httpConnect(host: "", port: 1, credentials: nil)), [:], "the host is missing"),
      (.proxy(.socks5(host: "x", port: 0, credentials: nil)), [:], "from 1 to 65535"),
    ]
    for (selection, variables, text) in cases {
      guard case .failure(let error) = selection.settings(variable: { variables[$0] }) else {
        XCTFail("\(selection)")
        continue
      }
      XCTAssertEqual(error.code, .failedPrecondition)
      XCTAssertEqual(error.message?.contains(text), true, "\(error)")
      XCTAssertFalse(String(reflecting: error).contains("secret"), "\(error)")
    }
    let client = NIOHTTPClient(configuration: .init(proxy: cases[3].selection))
    let server = Origin(scheme: .http, host: "server", port: 80)
    XCTAssertThrowsError(try client.endpoint(for: server, on: nil, requiresHTTP2: false)) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
    }
    let socket = Origin(scheme: .unix, host: "/tmp/none", port: 0)
    XCTAssertNoThrow(try client.endpoint(for: socket, on: nil, requiresHTTP2: false))
    await client.shutdown()
  }
}
