import Connect
import ConnectInterceptors
import ConnectNIO
import LoopbackServer
import NIOCore
import XCTest

/// What wire interceptors make of the authority of a call.
final class WireAuthorityTests: XCTestCase {
  private typealias Change = @Sendable (HTTPStreamRequest) -> HTTPStreamRequest

  private static let new: Change = {
    HTTPStreamRequest(method: $0.method, target: $0.target, headers: $0.headers, body: $0.body)
  }

  private static func setting(_ authority: String?) -> Change {
    {
      var request = $0
      request.authority = authority
      return request
    }
  }

  private func factory(_ change: @escaping Change) -> WireInterceptorFactory {
    { _ in WireFunction(requestHeadFunction: { head, proceed in proceed(change(head)) }) }
  }

  /// A newly created request inherits it; a copy may be without it.
  func testWhatTheTransportIsTold() throws {
    let cases: [([Change], String?)] = [
      ([Self.new], "api.example"),
      ([Self.setting(nil)], nil),
      ([Self.new, Self.setting(nil)], nil),
      ([Self.setting(nil), Self.new], nil),
      ([Self.setting("other.example"), Self.new], "other.example"),
    ]
    for (index, (changes, expected)) in cases.enumerated() {
      let scene = try WireScene(changes.map(self.factory)).start { $0.authority = "api.example" }
      XCTAssertNotNil(scene.stream, "\(index)")
      XCTAssertEqual(scene.stream?.request.authority, expected, "\(index)")
    }
  }

  /// Over HTTP/1.1 in cleartext, which writes it into a line.
  func testItIsChecked() async throws {
    let server = try await LoopbackServer.start()
    let http = NIOHTTPClient(configuration: .init(version: .http1Only))
    for authority in ["a.example\r\nx-smuggled: 1", "a b", "", "user@a.example", "https://a.example"] {
      let client = ProtocolClient(
        httpClient: WireHTTPClient(http, interceptors: [self.factory(Self.setting(authority))]),
        config: ProtocolClientConfig(host: server.url)
      )
      let response = await client.unary(TestMethods.echo, .init())
      XCTAssertEqual(response.code, .internalError, authority)
      let message = response.error?.message ?? ""
      XCTAssertTrue(message.hasPrefix("wire interceptors have made a request that must not be sent"), message)
      XCTAssertTrue(message.contains("authority"), message)
    }
    XCTAssertEqual(server.requests.count, 0)
    let client = ProtocolClient(
      httpClient: WireHTTPClient(http, interceptors: [self.factory(Self.setting("a.example:8080"))]),
      config: ProtocolClientConfig(host: server.url)
    )
    let response = await client.unary(TestMethods.echo, .init())
    XCTAssertEqual(response.code, .ok, "\(String(describing: response.error))")
    XCTAssertEqual(server.requests.map { $0.headers.first("host") }, ["a.example:8080"])
    await http.shutdown()
    await server.stop()
  }
}
