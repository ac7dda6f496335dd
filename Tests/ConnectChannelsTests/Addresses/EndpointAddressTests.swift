import ConnectChannels
import XCTest

final class EndpointAddressTests: XCTestCase {
  func testParsing() {
    let table: [(String, EndpointAddress?)] = [
      ("10.0.0.1:80", .ip("10.0.0.1", port: 80)),
      ("255.255.255.255:65535", .ip("255.255.255.255", port: 65535)),
      ("[::1]:80", .ip("::1", port: 80)),
      ("[::]:0", .ip("::", port: 0)),
      ("[2001:DB8:0:0:1:0:0:1]:443", .ip("2001:db8::1:0:0:1", port: 443)),
      ("[2001:db8::0001]:443", .ip("2001:db8::1", port: 443)),
      ("[1:2:3:4:5:6:7:8]:1", .ip("1:2:3:4:5:6:7:8", port: 1)),
      ("[1:0:3:4:5:6:7:8]:1", .ip("1:0:3:4:5:6:7:8", port: 1)),
      ("[1::8]:1", .ip("1::8", port: 1)),
      ("[1::]:1", .ip("1::", port: 1)),
      ("[::ffff:10.0.0.1]:1", .ip("::ffff:10.0.0.1", port: 1)),
      ("[::ffff:a00:1]:1", .ip("::ffff:10.0.0.1", port: 1)),
      ("[64:ff9b::1.2.3.4]:1", .ip("64:ff9b::102:304", port: 1)),
      ("[fe80::1%eth0]:1", .ip("fe80::1%eth0", port: 1)),
      ("unix:/run/rpc", .unix(path: "/run/rpc")),
      ("unix:///run/rpc", .unix(path: "/run/rpc")),
      ("unix:relative", .unix(path: "relative")),
      ("unix://host/run", nil),
      ("unix-abstract:rpc", .unixAbstract(name: "rpc")),
      ("unix-abstract:", nil),
      ("vsock:3:50051", .vsock(cid: 3, port: 50_051)),
      ("vsock:3", nil),
      ("vsock:3:-1", nil),
      ("vsock:3:4294967295", nil),
      ("unix:", nil),
      ("unix://", nil),
      ("", nil),
      (":80", nil),
      ("10.0.0.1", nil),
      ("10.0.0.1:", nil),
      ("10.0.0.1:+80", nil),
      ("10.0.0.1:-1", nil),
      ("10.0.0.1:65536", nil),
      ("10.0.0.1:000080", nil),
      ("10.0.0:80", nil),
      ("10.0.0.1.2:80", nil),
      ("10.0.0.256:80", nil),
      ("10.0.0.01:80", nil),
      ("10.0.0.:80", nil),
      ("example.com:80", nil),
      ("::1:80", nil),
      ("[::1]", nil),
      ("[::1:80", nil),
      ("[10.0.0.1]:80", nil),
      ("[:::]:80", nil),
      ("[1::2::3]:80", nil),
      ("[1:2:3:4:5:6:7]:80", nil),
      ("[1:2:3:4:5:6:7:8:9]:80", nil),
      ("[1:2:3:4::5:6:7:8]:80", nil),
      ("[12345::]:80", nil),
      ("[+1::]:80", nil),
      ("[-1::]:80", nil),
      ("[g::]:80", nil),
      ("[1:]:80", nil),
      ("[:1]:80", nil),
      ("[fe80::1%]:80", nil),
      ("[::1.2.3]:80", nil),
      ("[1.2.3.4::]:80", nil),
    ]
    for (text, address) in table { XCTAssertEqual(EndpointAddress(text), address, text) }
  }

  func testDescriptionIsParsedAgain() {
    for text in [
      "10.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:1", "[::ffff:10.0.0.1]:1", "unix:/run/rpc", "unix:x",
      "unix-abstract:rpc", "vsock:3:50051",
    ] {
      XCTAssertEqual(EndpointAddress(text)?.description, text)
    }
  }

  func testEqualAddressesHaveTheSameDescription() {
    for (text, description) in [
      ("[2001:DB8:0:0:1:0:0:1]:443", "[2001:db8::1:0:0:1]:443"),
      ("[2001:db8::0001]:443", "[2001:db8::1]:443"),
      ("[::ffff:a00:1]:1", "[::ffff:10.0.0.1]:1"), ("[64:ff9b::1.2.3.4]:1", "[64:ff9b::102:304]:1"),
      ("unix:///run/rpc", "unix:/run/rpc"),
    ] {
      XCTAssertEqual(EndpointAddress(text)?.description, description)
    }
  }

  func testFamily() {
    XCTAssertEqual(EndpointAddress("10.0.0.1:80")?.family, .ipv4)
    XCTAssertEqual(EndpointAddress("[::1]:80")?.family, .ipv6)
    XCTAssertEqual(EndpointAddress("[::ffff:a00:1]:80")?.family, .ipv4)
    XCTAssertEqual(EndpointAddress("unix:/x")?.family, .unix)
    XCTAssertEqual(EndpointAddress("unix-abstract:x")?.family, .unix)
    XCTAssertEqual(EndpointAddress("vsock:1:2")?.family, .vsock)
  }

  func testEndpointText() {
    let endpoint = Endpoint("10.0.0.1:80,[::1]:80")
    XCTAssertEqual(endpoint?.addresses, [.ip("10.0.0.1", port: 80), .ip("::1", port: 80)])
    XCTAssertEqual(endpoint?.description, "10.0.0.1:80,[::1]:80")
    XCTAssertEqual(endpoint?.weight, 1)
    XCTAssertNil(Endpoint("10.0.0.1:80,"))
    XCTAssertNil(Endpoint(""))
  }

  func testIdentity() throws {
    let endpoint = try XCTUnwrap(Endpoint("10.0.0.1:80,[::1]:80"))
    var other = try XCTUnwrap(Endpoint("[::1]:80,10.0.0.1:80"))
    other.weight = 7
    XCTAssertEqual(endpoint.identity, other.identity)
    XCTAssertEqual([endpoint, other].withoutDuplicates(), [endpoint])
    other.key = "pod-1"
    XCTAssertNotEqual(endpoint.identity, other.identity)
    var moved = try XCTUnwrap(Endpoint("10.0.0.9:80"))
    moved.key = "pod-1"
    XCTAssertEqual(moved.identity, other.identity)
  }
}
