import XCTest

@testable import ConnectChannels

final class TargetTests: XCTestCase {
  func testTargets() throws {
    let ip = { (text: String, port: Int) in EndpointAddress.ip(IPAddress(text)!, port: port) }
    let cases: [(text: String, target: Target, description: String?)] = [
      (
        "https://api.example", .url(.init(host: "api.example", port: 443), isSecure: true),
        "https://api.example:443"
      ),
      (
        "HTTP://api.example:81/", .url(.init(host: "api.example", port: 81), isSecure: false),
        "http://api.example:81"
      ),
      ("https://[::1]:1", .url(.init(host: "::1", port: 1), isSecure: true), nil),
      ("dns:api.example:80", .dns(.init(host: "api.example", port: 80), server: nil), nil),
      ("dns:api.example", .dns(.init(host: "api.example", port: 443), server: nil), "dns:api.example:443"),
      (
        "dns:///api.example:80", .dns(.init(host: "api.example", port: 80), server: nil), "dns:api.example:80"
      ),
      (
        "dns://10.0.0.1/api.example:80",
        .dns(.init(host: "api.example", port: 80), server: ip("10.0.0.1", 53)),
        "dns://10.0.0.1:53/api.example:80"
      ),
      ("dns://[::1]:54/api:80", .dns(.init(host: "api", port: 80), server: ip("::1", 54)), nil),
      ("ipv4:1.2.3.4:80,1.2.3.5:81", .addresses([ip("1.2.3.4", 80), ip("1.2.3.5", 81)]), nil),
      ("ipv4:1.2.3.4", .addresses([ip("1.2.3.4", 443)]), "ipv4:1.2.3.4:443"),
      ("ipv6:[::1]:80", .addresses([ip("::1", 80)]), nil),
      ("ipv6:::1", .addresses([ip("::1", 443)]), "ipv6:[::1]:443"),
      (
        "ipv6:[2001:db8::1],[::2]:9", .addresses([ip("2001:db8::1", 443), ip("::2", 9)]),
        "ipv6:[2001:db8::1]:443,[::2]:9"
      ),
      ("unix:/run/a.sock", .unix(path: "/run/a.sock"), nil),
      ("unix:a.sock", .unix(path: "a.sock"), nil),
      ("unix:///run/a.sock", .unix(path: "/run/a.sock"), "unix:/run/a.sock"),
      ("unix-abstract:a.sock", .unixAbstract(name: "a.sock"), nil),
      ("unix-abstract:/a:b c", .unixAbstract(name: "/a:b c"), nil),
      ("vsock:3:50051", .vsock(cid: 3, port: 50_051), nil),
      ("vsock:4294967294:4294967294", .vsock(cid: .max - 1, port: .max - 1), nil),
      ("srv:_grpc._tcp.example.com", .service(name: "_grpc._tcp.example.com"), nil),
      ("xds:///orders", .xds(authority: nil, name: "orders"), nil),
      ("xds:orders:80", .xds(authority: nil, name: "orders:80"), "xds:///orders:80"),
      ("XDS:/a/b", .xds(authority: nil, name: "a/b"), "xds:///a/b"),
      ("xds://mesh.example/a/orders", .xds(authority: "mesh.example", name: "a/orders"), nil),
    ]
    for (text, target, description) in cases {
      XCTAssertEqual(try Target(text), target, text)
      XCTAssertEqual(target.description, description ?? text)
      XCTAssertEqual(try Target(target.description), target, text)
    }
  }

  func testErrorsSayWhatToDo() {
    let cases: [(text: String, advice: String)] = [
      ("", "no scheme; write https://HOST:PORT"), ("example", "no scheme"),
      ("localhost:80", "write dns:localhost:80"),
      ("[::1]:80", "write dns:[::1]:80"), ("https:example", "two slashes"),
      ("https://", "the host is missing"),
      ("https://a/b", "it has a path"), ("https://a?b", "it has a path"),
      ("https://u:p@a", "it has credentials"),
      ("https://a:0", "1 to 65535"), ("dns:", "the host is missing"), ("dns://a", "write dns:HOST:PORT"),
      ("dns://1.2.3.4/", "write dns:HOST:PORT"), ("dns://ns.example/a", "has to be an IP address"),
      ("dns://1.2.3.4/a/b", "write dns:HOST:PORT"), ("ipv4:", "the host is missing"),
      ("ipv4:[::1]:80", "ipv4:192.0.2.1"),
      ("ipv4:1.2.3.4,", "the host is missing"), ("ipv4:name:80", "or dns:NAME"), ("ipv6:1.2.3.4", "ipv6:["),
      ("unix:", "1 to 107 bytes"), ("unix:/" + String(repeating: "a", count: 107), "1 to 107 bytes"),
      ("unix://host/a", "has to be absolute"), ("srv:example.com", "srv:_SERVICE._tcp.NAME"),
      ("srv:_a._tcp", "srv:_SERVICE._tcp.NAME"), ("srv:_._tcp.x", "srv:_SERVICE"),
      ("srv:_a._tcp.x:80", "without a port"),
      ("unix-abstract:", "1 to 107 bytes"), ("unix-abstract:a\0b", "no NUL"),
      ("unix-abstract:" + String(repeating: "a", count: 108), "1 to 107 bytes"),
      ("vsock:", "vsock:CID:PORT"), ("vsock:x", "vsock:CID:PORT"), ("vsock:3", "vsock:CID:PORT"),
      ("vsock:3:", "vsock:CID:PORT"), ("vsock:3:x", "vsock:CID:PORT"), ("vsock:-1:5", "vsock:CID:PORT"),
      ("vsock:3:5:6", "vsock:CID:PORT"), ("vsock:3:4294967295", "0 to 4294967294"),
      ("vsock:99999999999999999999:1", "0 to 4294967294"),
      ("xds:", "write xds:///NAME"), ("xds:///", "write xds:///NAME"),
      ("xds://authority", "xds://AUTHORITY/NAME"),
      ("xds:///a b", "without spaces"), ("https://bücher.example", "Punycode"),
    ]
    for (text, advice) in cases {
      XCTAssertThrowsError(try Target(text), text) { error in
        XCTAssertTrue("\(error)".contains(advice), "\(text): \(error)")
      }
    }
  }
}
