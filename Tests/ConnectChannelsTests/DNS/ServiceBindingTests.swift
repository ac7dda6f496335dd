import XCTest

@testable import ConnectChannels

/// HTTPS records (RFC 9460), and what they say of HTTP/3.
final class ServiceBindingTests: XCTestCase {
  private func binding(
    priority: UInt16 = 1,
    target: [String] = [],
    _ parameters: (key: UInt16, value: [UInt8])...
  ) -> ServiceBinding {
    var bytes = [UInt8(priority >> 8), UInt8(priority & 0xff)]
    for label in target { bytes += [UInt8(label.utf8.count)] + label.utf8 }
    bytes.append(0)
    for (key, value) in parameters {
      bytes +=
        [UInt8(key >> 8), UInt8(key & 0xff), UInt8(value.count >> 8), UInt8(value.count & 0xff)] + value
    }
    return ServiceBinding(bytes)
  }

  private func alpn(_ names: String...) -> (key: UInt16, value: [UInt8]) {
    (1, names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) })
  }

  private func port(_ bindings: ServiceBinding..., of port: Int = 443) -> Int? {
    bindings.http3Port(host: "api.test", port: port)
  }

  func testParameters() {
    let binding = self.binding(
      priority: 16,
      target: ["API", "test"],
      self.alpn("h2", "h3"),
      (2, []),
      (3, [0x20, 0xfb]),
      (4, [192, 0, 2, 1]),
      (6, Array(repeating: 1, count: 16)),
      (65_280, [1])
    )
    XCTAssertFalse(binding.isMalformed)
    XCTAssertTrue(binding.isCompatible)
    XCTAssertEqual(binding.priority, 16)
    XCTAssertEqual(binding.target, DNSName("api.test"))
    XCTAssertEqual(binding.protocols, ["h2", "h3"])
    XCTAssertEqual(binding.port, 8_443)
  }

  func testPortOfHTTP3() {
    XCTAssertEqual(self.port(self.binding(self.alpn("h2", "h3"))), 443)
    XCTAssertEqual(self.port(self.binding(self.alpn("h3"), (3, [0x20, 0xfb]))), 8_443)
    XCTAssertEqual(self.port(self.binding(target: ["api", "test"], self.alpn("h3")), of: 9_000), 9_000)
    XCTAssertNil(self.port())
    XCTAssertNil(self.port(self.binding()))
    XCTAssertNil(self.port(self.binding(self.alpn("h2", "h3-29"))))
    XCTAssertNil(self.port(self.binding(self.alpn("h3"), (3, [0, 0]))))
  }

  func testOtherTargetsAndAliases() {
    XCTAssertNil(self.port(self.binding(target: ["other", "test"], self.alpn("h3"))))
    XCTAssertNil(self.port(self.binding(priority: 0, target: ["api", "test"], self.alpn("h3"))))
    // An alias makes the other records void.
    XCTAssertNil(self.port(self.binding(self.alpn("h3")), self.binding(priority: 0, target: ["b", "test"])))
    // The record's own name is not the host's where the origin has a port of its own.
    XCTAssertNil(self.port(self.binding(self.alpn("h3")), of: 9_000))
    XCTAssertEqual([ServiceBinding].name(host: "api.test", port: 443), "api.test")
    XCTAssertEqual([ServiceBinding].name(host: "api.test", port: 9_000), "_9000._https.api.test")
  }

  func testPriorities() {
    let first = self.binding(priority: 1, self.alpn("h3"), (3, [0, 1]))
    let second = self.binding(priority: 2, self.alpn("h3"), (3, [0, 2]))
    XCTAssertEqual(self.port(second, first), 1)
    XCTAssertEqual(self.port(self.binding(priority: 1, self.alpn("h2")), second), 2)
  }

  func testMandatoryParameters() {
    let known = self.binding((0, [0, 1, 0, 3]), self.alpn("h3"), (3, [0, 7]))
    XCTAssertEqual(self.port(known), 7)
    let unknown = self.binding((0, [0xff, 0]), self.alpn("h3"), (65_280, []))
    XCTAssertFalse(unknown.isMalformed)
    XCTAssertNil(self.port(unknown))
    XCTAssertEqual(self.port(unknown, self.binding(priority: 2, self.alpn("h3"))), 443)
    // An encrypted hello that has to be understood.
    XCTAssertNil(self.port(self.binding((0, [0, 5]), self.alpn("h3"), (5, [1]))))
    XCTAssertEqual(self.port(self.binding(self.alpn("h3"), (5, [1]))), 443)
  }

  func testMalformedRecords() {
    let good = self.binding(priority: 2, self.alpn("h3"))
    for (name, bad) in [
      ("empty", ServiceBinding([])),
      ("no target", ServiceBinding([0, 1])),
      ("cut", ServiceBinding([0, 1, 0, 0, 1, 0, 9])),
      ("keys that fall", self.binding((3, [0, 1]), self.alpn("h3"))),
      ("a key twice", self.binding(self.alpn("h3"), self.alpn("h3"))),
      ("no protocols", self.binding((1, []))),
      ("an empty protocol", self.binding((1, [0]))),
      ("a protocol that is cut", self.binding((1, [3, 1]))),
      ("a short port", self.binding((3, [1]))),
      ("no default, but no protocols", self.binding((2, []))),
      ("no default with a value", self.binding(self.alpn("h3"), (2, [1]))),
      ("nothing mandatory", self.binding((0, []), self.alpn("h3"))),
      ("a mandatory key that is absent", self.binding((0, [0, 3]), self.alpn("h3"))),
      ("itself mandatory", self.binding((0, [0, 0]), self.alpn("h3"))),
      ("mandatory keys that fall", self.binding((0, [0, 3, 0, 1]), self.alpn("h3"), (3, [0, 1]))),
      ("half a mandatory key", self.binding((0, [0, 1, 0]), self.alpn("h3"))),
    ] {
      XCTAssertTrue(bad.isMalformed, name)
      // The others do not count either.
      XCTAssertNil(self.port(good, bad), name)
    }
  }

  func testDamagedRecordsDoNotTrap() {
    var random = SeededRandom(seed: 11)
    let good: [UInt8] =
      [0, 1, 3, 97, 98, 99, 0] + [0, 0, 0, 2, 0, 1] + [0, 1, 0, 6, 2, 104, 50, 2, 104, 51] + [
        0, 3, 0, 2, 1, 187,
      ]
    XCTAssertFalse(ServiceBinding(good).isMalformed)
    for _ in 0..<20_000 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
        let index = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = .random(in: 0...8, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.removeSubrange(index...)
        }
      }
      _ = [ServiceBinding(bytes)].http3Port(host: "abc", port: 443)
    }
  }

  // MARK: - Lookups

  func testLookup() {
    var harness = StubHarness(.bindings(of: "api.test"))
    harness.answer("api.test", .https) { builder in
      builder.record(dns("api.test"), .https, ttl: 77) { $0.raw([0, 1, 0, 0, 1, 0, 3, 2, 104, 51]) }
    }
    XCTAssertEqual(harness.answer?.bindings.http3Port(host: "api.test", port: 443), 443)
    XCTAssertEqual(harness.answer?.timeToLive, .seconds(77))
  }

  func testLookupBehindAnAlias() {
    var harness = StubHarness(.bindings(of: "api.test"))
    harness.answer("api.test", .https) { builder in
      builder.alias(dns("api.test"), to: dns("b.test"))
      builder.record(dns("b.test"), .https) { $0.raw([0, 1, 0, 0, 1, 0, 3, 2, 104, 51]) }
    }
    XCTAssertEqual(harness.answer?.bindings.http3Port(host: "api.test", port: 443), 443)
  }

  /// A name without records ends the search: those of the next candidate would be of another server.
  func testSearchListEndsWithTheNameThatExists() {
    var harness = StubHarness(.bindings(of: "api"), StubHarness.configuration(search: ["a.test", "b.test"]))
    harness.answer("api.a.test", .https, code: .noSuchName) { $0.authority(dns("a.test")) }
    harness.answer("api.b.test", .https) { $0.authority(dns("b.test")) }
    XCTAssertEqual(harness.error?.reason, .noRecords)
    XCTAssertEqual(harness.sent.count, 2)
  }
}
