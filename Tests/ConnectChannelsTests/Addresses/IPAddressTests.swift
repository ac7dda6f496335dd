import XCTest

@testable import ConnectChannels

final class IPAddressTests: XCTestCase {
  func testTexts() {
    let cases: [(text: String, canonical: String?)] = [
      ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
      ("256.0.0.1", nil), ("1.2.3", nil), ("1.2.3.4.5", nil), ("01.2.3.4", nil), ("1.2.3.", nil), ("", nil),
      ("1.2.3.4 ", nil), ("0x1.2.3.4", nil), ("1.2.3.+4", nil),
      ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8::A", "2001:db8::a"),
      ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
      ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("1:2:3:4:5:6:0:8", "1:2:3:4:5:6:0:8"),
      ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
      ("fe80::1%eth0", "fe80::1%eth0"), ("fe80::1%", nil), ("fe80::1%a]b", nil), ("fe80::1%a%b", nil),
      (":", nil), (":::", nil), ("1:::2", nil), ("1::2::3", nil), ("1:2:3:4:5:6:7", nil),
      ("1:2:3:4:5:6:7:8:9", nil), ("1::2:3:4:5:6:7:8", nil), ("12345::", nil), ("g::", nil),
      (":1:2:3:4:5:6:7", nil),
      ("1:2:3:4:5:6:7:", nil), ("1.2.3.4::", nil), ("::1.2.3.4:5", nil), ("[::1]", nil),
    ]
    for (text, canonical) in cases {
      XCTAssertEqual(IPAddress(text)?.description, canonical, text)
    }
  }

  func testBytes() {
    XCTAssertEqual(IPAddress("192.0.2.1")?.bytes, [192, 0, 2, 1])
    XCTAssertEqual(IPAddress("::1")?.bytes, Array(repeating: 0, count: 15) + [1])
    XCTAssertNil(IPAddress(bytes: [1, 2, 3]))
    XCTAssertNil(IPAddress(bytes: [UInt8](repeating: 0, count: 17)))
  }

  func testRandomAddressesKeepTheirValue() {
    var random = SeededRandom(seed: 1)
    for _ in 0..<5_000 {
      let count = Bool.random(using: &random) ? 4 : 16
      // Many zeros, so that there is something to shorten.
      let bytes = (0..<count).map { _ in
        Bool.random(using: &random) ? 0 : UInt8.random(in: 0 ... .max, using: &random)
      }
      let address = IPAddress(bytes: bytes)
      XCTAssertEqual(address?.bytes, bytes)
      XCTAssertEqual(address, address.flatMap { IPAddress($0.description) }, "\(bytes)")
    }
  }

  func testParsesAsTheCLibrary() {
    var random = SeededRandom(seed: 2)
    let alphabet = Array(":::..0123456789afg".utf8)
    for round in 0..<fuzzRounds {
      var text = ["1:2::3:4", "::ffff:1.2.3.4", "10.20.30.40", "1:2:3:4:5:6:7:8"][round % 4].utf8.map { $0 }
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<text.count, using: &random)
        if Bool.random(using: &random) {
          text[index] = alphabet.randomElement(using: &random) ?? 0x30
        } else {
          text.insert(alphabet.randomElement(using: &random) ?? 0x30, at: index)
        }
      }
      let string = String(decoding: text, as: UTF8.self)
      XCTAssertEqual(IPAddress(string)?.bytes, self.parsedByTheCLibrary(string), string)
    }
  }

  private func parsedByTheCLibrary(_ text: String) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
    return inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
  }

  func testNetworks() {
    let cases: [(network: String, address: String, isInside: Bool)] = [
      ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.1.2.3/8", "10.9.9.9", true),
      ("0.0.0.0/0", "1.2.3.4", true), ("0.0.0.0/0", "::1", false), ("::/0", "1.2.3.4", false),
      ("192.0.2.1/32", "192.0.2.1", true), ("192.0.2.1/32", "192.0.2.2", false),
      ("2001:db8::/33", "2001:db8:7fff::1", true), ("2001:db8::/33", "2001:db8:8000::1", false),
      ("::1/128", "::1", true), ("10.0.0.0/8", "::ffff:10.1.1.1", true),
      ("::ffff:0:0/96", "::ffff:10.1.1.1", true),
    ]
    for (network, address, isInside) in cases {
      XCTAssertEqual(IPNetwork(network)?.contains(IPAddress(address)!), isInside, "\(address) in \(network)")
    }
    for text in [
      "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "/8", "10.0.0.0/8/8", "a/8", "fe80::%e/10",
    ] {
      XCTAssertNil(IPNetwork(text), text)
    }
    XCTAssertEqual(IPNetwork("10.1.2.3/8")?.description, "10.0.0.0/8")
  }

  func testHostAndPort() {
    let cases: [(text: String, result: String)] = [
      ("host", "host:443"), ("host:1", "host:1"), ("host:65535", "host:65535"), ("[::1]", "[::1]:443"),
      ("[::1]:80", "[::1]:80"), ("::1", "[::1]:443"), ("1.2.3.4:80", "1.2.3.4:80"),
      ("[fe80::1%e0]:1", "[fe80::1%e0]:1"),
      ("", "the host is missing"), (":80", "the host is missing"), ("host:", "is not a number"),
      ("host:0", "is not a number"), ("host:65536", "is not a number"), ("host:+1", "is not a number"),
      ("host:99999999999999999999", "is not a number"), ("a:b:c", "too many colons"), ("[host]:1", "IPv6"),
      ("[::1", "IPv6"), ("[::1]x", "after the brackets"), ("a b", "no host name"),
      ("a\r\nb:1", "no host name"),
      ("user@host", "no host name"), ("bücher.example", "Punycode"),
    ]
    for (text, result) in cases {
      do throws(HostProblem) {
        let parsed = try HostAndPort(parsing: text, defaultPort: 443)
        XCTAssertEqual(parsed.description, result, text)
      } catch {
        XCTAssertTrue(error.text.contains(result), "\(text): \(error.text)")
      }
    }
  }
}
