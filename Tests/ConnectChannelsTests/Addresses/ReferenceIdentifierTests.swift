import XCTest

@testable import ConnectChannels

final class ReferenceIdentifierTests: XCTestCase {
  private static func presented(_ names: [String], _ addresses: [String] = []) -> PresentedIdentifiers {
    PresentedIdentifiers(
      dnsNames: names.map { Array($0.utf8) },
      addresses: addresses.compactMap { IPAddress($0)?.bytes }
    )
  }

  // MARK: What is meant

  func testNames() throws {
    let cases = [
      ("local.test", "local.test"), ("LOCAL.Test.", "local.test"), ("localhost", "localhost"),
      ("a_b.test", "a_b.test"), ("xn--Bcher-KVA.test", "xn--bcher-kva.test"), ("web.1", "web.1"),
      ("1.test", "1.test"), ("0x.test", "0x.test"), ("fe80--1.test", "fe80--1.test"), ("face", "face"),
    ]
    for (text, name) in cases {
      let identifier = try ReferenceIdentifier(text)
      XCTAssertEqual(identifier, .name(name), text)
      XCTAssertEqual(identifier.serverNameIndication, name)
      XCTAssertEqual(identifier.description, name)
    }
    let label = String(repeating: "a", count: 63)
    XCTAssertNoThrow(try ReferenceIdentifier("\(label).\(label).\(label).\(label.dropLast(2))."))
  }

  func testAddresses() throws {
    let cases = [
      ("127.0.0.1", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1"),
      ("[2001:DB8::1]", "2001:db8::1"), ("fe80::1%eth0", "fe80::1"), ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
    ]
    for (text, address) in cases {
      let identifier = try ReferenceIdentifier(text)
      XCTAssertEqual(identifier, .address(try XCTUnwrap(IPAddress(address))), text)
      XCTAssertNil(identifier.serverNameIndication, text)
      XCTAssertEqual(identifier.description, address)
    }
  }

  func testTextsThatAreNeither() {
    let cases = [
      ("", "no name"), (".", "no name"), ("a..b", "between its dots"), (".a", "between its dots"),
      ("a.test..", "between its dots"), (String(repeating: "a", count: 64), "between its dots"),
      (String(repeating: "a.", count: 127) + "ab", "at most 253"),
      ("büro.test", "not ASCII; write it in Punycode"), ("\u{212a}.test", "not ASCII"),
      ("*.test", "no host name has"), ("a b", "no host name has"), ("a\0b", "no host name has"),
      ("local.test:443", "without a scheme, port"), ("https://local.test", "without a scheme, port"),
      ("a%2eb", "no host name has"), (" a", "no host name has"), ("a/b", "no host name has"),
      ("[127.0.0.1]", "brackets"), ("[::1", "brackets"), ("[local.test]", "brackets"),
      ("::1]", "no host name"),
      ("::g", "no host name has"), ("127.1", "four decimal numbers"), ("010.0.0.1", "four decimal numbers"),
      ("256.0.0.1", "four decimal numbers"), ("1.2.3.4.5", "four decimal numbers"),
      ("2130706433", "four decimal"),
      ("0x7f.0.0.1", "four decimal numbers"), ("0X7F000001", "four decimal numbers"),
    ]
    for (text, words) in cases {
      XCTAssertThrowsError(try ReferenceIdentifier(text), text) { error in
        let problem = (error as? HostProblem)?.text ?? ""
        XCTAssertTrue(problem.contains(words), "\(text): \(problem)")
      }
    }
  }

  // MARK: What a certificate says

  /// RFC 9525, section 6.3.
  func testNamesOfCertificates() throws {
    let cases: [(pattern: String, name: String, isMatch: Bool)] = [
      ("local.test", "local.test", true), ("LOCAL.TEST", "local.test", true),
      ("local.test", "LOCAL.test.", true),
      ("local.test", "a.local.test", false), ("a.local.test", "local.test", false),
      ("local.test", "local.tes", false), ("local.test", "xlocal.test", false),
      ("localhost", "localhost", true),
      // A wildcard is the whole first label, and stands for one label.
      ("*.local.test", "a.local.test", true), ("*.LOCAL.test", "A.local.TEST", true),
      ("*.local.test", "a.b.local.test", false), ("*.local.test", "local.test", false),
      ("*.local.test", "xn--bcher-kva.local.test", true),
      ("lo*.test", "local.test", false), ("*cal.test", "local.test", false),
      ("l*l.test", "local.test", false),
      ("lo*.a.test", "local.a.test", false), ("*cal.a.test", "local.a.test", false),
      ("xn--*.a.test", "xn--bcher-kva.a.test", false),
      ("a.*.test", "a.local.test", false), ("*.*.test", "a.local.test", false),
      ("**.a.test", "b.a.test", false),
      ("local.*", "local.test", false), ("a.local.*", "a.local.test", false),
      // Two labels behind it.
      ("*.test", "local.test", false), ("*", "localhost", false), ("*", "local.test", false),
      ("*.", "localhost", false), ("*.test.", "local.test", false), ("*..test", "a..test", false),
      // Not in the preferred form of names (RFC 5280, section 4.2.1.6).
      ("local.test.", "local.test", false), ("local.test.", "local.test.", false), ("", "local.test", false),
      (" local.test", "local.test", false), ("local.test\0", "local.test", false),
      ("local.test\0.evil.test", "local.test", false), ("https://local.test", "local.test", false),
      // Only ASCII letters have a case: the Kelvin sign is no k.
      ("\u{212a}.local.test", "k.local.test", false), ("localho\u{17f}t", "localhost", false),
      ("bücher.test", "xn--bcher-kva.test", false), ("XN--BCHER-KVA.test", "xn--bcher-kva.test", true),
    ]
    for (pattern, name, isMatch) in cases where (try? ReferenceIdentifier(name)) != nil {
      let identifier = try ReferenceIdentifier(name)
      let others = ["unrelated.test", "*.unrelated.test"]
      for names in [[pattern], [pattern] + others, others + [pattern]] {
        XCTAssertEqual(identifier.matches(Self.presented(names)), isMatch, "\(names) for \(name)")
        let alsoAddresses = Self.presented(names, ["127.0.0.1", "::1"])
        XCTAssertEqual(identifier.matches(alsoAddresses), isMatch, "\(names) and addresses for \(name)")
      }
    }
    XCTAssertFalse(try ReferenceIdentifier("local.test").matches(PresentedIdentifiers()))
  }

  /// RFC 9525, section 6.4: octets are compared, and only with names that are addresses.
  func testAddressesOfCertificates() throws {
    let cases: [(address: String, names: [String], addresses: [String], isMatch: Bool)] = [
      ("127.0.0.1", [], ["127.0.0.1"], true), ("127.0.0.1", [], ["127.0.0.2", "127.0.0.1"], true),
      ("127.0.0.1", [], ["127.0.0.2"], false), ("127.0.0.1", ["127.0.0.1"], [], false),
      ("127.0.0.1", ["*.0.0.1"], [], false), ("127.0.0.1", [], [], false),
      ("::1", [], ["::1"], true), ("[::1]", [], ["::1"], true), ("::1", ["::1"], ["::2"], false),
      ("fe80::1%eth0", [], ["fe80::1"], true),
      ("::ffff:127.0.0.1", [], ["127.0.0.1"], false), ("127.0.0.1", [], ["::ffff:127.0.0.1"], false),
    ]
    for (address, names, addresses, isMatch) in cases {
      let identifier = try ReferenceIdentifier(address)
      let presented = Self.presented(names, addresses)
      XCTAssertEqual(identifier.matches(presented), isMatch, "\(names) \(addresses) for \(address)")
    }
    let address = try ReferenceIdentifier("127.0.0.1")
    for bytes in [[], [127, 0, 0], [127, 0, 0, 1, 0], [127, 0, 0, 1, 255, 255, 255, 255]] as [[UInt8]] {
      XCTAssertFalse(address.matches(PresentedIdentifiers(addresses: [bytes])), "\(bytes)")
    }
  }
}
