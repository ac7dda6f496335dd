import Connect
import ConnectTesting
import XCTest

@testable import ConnectChannels

/// Calls that ask for a host which the server's certificate has to name (gRFC A81).
final class AuthorityCheckTests: XCTestCase {
  private func check(_ names: String..., addresses: [[UInt8]] = []) -> AuthorityCheck {
    let presented = PresentedIdentifiers(dnsNames: names.map { Array($0.utf8) }, addresses: addresses)
    return AuthorityCheck(
      of: "https://fleet.test",
      names: { presented },
      text: { _ in names.isEmpty ? nil : names.joined(separator: ", ") }
    )
  }

  func testNames() {
    let check = self.check("api.example", "*.sub.example", addresses: [[127, 0, 0, 1]])
    for authority in ["api.example", "API.example:8443", "x.sub.example", "127.0.0.1:1"] {
      XCTAssertNil(check.refusal(of: authority), authority)
    }
    for authority in [
      "example", "other.example", "a.b.sub.example", "sub.example", "127.0.0.2", "[::1]", "a b",
    ] {
      let error = check.refusal(of: authority)
      XCTAssertEqual(error?.code, .unavailable, authority)
      XCTAssertEqual(error?.isUnsent, true, authority)
      XCTAssertEqual(
        error?.message,
        "the call was not sent: its authority is '\(authority)', and the certificate of https://fleet.test is for "
          + "api.example, *.sub.example"
      )
    }
    XCTAssertNil(AuthorityCheck(of: "", names: { nil }, text: { _ in nil }).refusal(of: "other.example"))
    XCTAssertTrue(self.check().refusal(of: "a")?.message?.hasSuffix("names no host") == true)
  }

  /// A refused call is not sent, and takes no room from others; other calls share the connection.
  func testCalls() {
    let fleet = FakeFleet(["10.0.0.1:80"])
    fleet.network.standard = .accepts(.http1, streams: 1)
    fleet.network.authorities = self.check("api.example")
    for round in 1...3 {
      let refused = fleet.call(authority: "other.example")
      XCTAssertEqual(refused.error?.code, .unavailable)
      XCTAssertEqual(fleet.network.requests.count, round - 1)
      let call = fleet.call(authority: "api.example")
      XCTAssertEqual(fleet.network.requests.count, round)
      XCTAssertEqual(fleet.network.requests.last?.authority, "api.example")
      fleet.run { fleet.network.connections[0].streams[0].end() }
      XCTAssertTrue(call.hasEnded)
    }
    XCTAssertEqual(fleet.network.attempts.count, 1)
  }

  /// One that waits for room is refused once it would be sent.
  func testCallsThatWait() {
    let fleet = FakeFleet(["10.0.0.1:80"], limits: ConnectionLimits(http1Connections: 1))
    fleet.network.standard = .accepts(.http1, streams: 1)
    fleet.network.authorities = self.check("api.example")
    let first = fleet.call()
    let refused = fleet.call(authority: "other.example")
    let last = fleet.call()
    XCTAssertTrue(refused.isPending)
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(first.hasEnded)
    XCTAssertEqual(refused.error?.code, .unavailable)
    XCTAssertEqual(fleet.network.requests.count, 2)
    fleet.run { fleet.network.connections[0].streams[0].end() }
    XCTAssertTrue(last.hasEnded)
  }

  func testWithoutACheckEverythingIsSent() {
    let fleet = FakeFleet(["10.0.0.1:80"])
    fleet.call(authority: "other.example")
    XCTAssertEqual(fleet.network.requests.map(\.authority), ["other.example"])
  }

  func testCancelledAtOnce() {
    let fleet = FakeFleet(["10.0.0.1:80"])
    fleet.network.authorities = self.check("api.example")
    fleet.call()
    let call = FakeCall()
    var request = HTTPStreamRequest(method: .post, target: "/a.B/C", headers: [:], body: .streamed)
    request.authority = "other.example"
    fleet.executor.sync {
      call.start(on: fleet.channel, request)
      call.cancel()
    }
    fleet.executor.runUntilIdle()
    XCTAssertTrue(call.isPending)
  }
}
