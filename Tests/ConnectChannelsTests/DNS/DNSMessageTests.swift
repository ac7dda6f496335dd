import XCTest

@testable import ConnectChannels

final class DNSMessageTests: XCTestCase {
  func testQueryBytes() {
    let query = DNSQuery(id: 0x1234, name: dns("A.example"), type: .aaaa)
    var expected: [UInt8] = [0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0x61, 7]
    expected += "example".utf8
    expected += [0, 0, 28, 0, 1, 0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]
    XCTAssertEqual(query.encoded, expected)
    let message = DNSMessage(decoding: query.encoded)
    XCTAssertEqual(message?.questions, [.init(name: dns("a.EXAMPLE"), type: .aaaa)])
    XCTAssertEqual(message?.datagramSize, 1_232)
    XCTAssertEqual(message?.isRecursionDesired, true)
    let plain = DNSQuery(id: 1, name: dns("a"), type: .a, usesEDNS: false)
    XCTAssertEqual(plain.encoded.count, 12 + 3 + 4)
  }

  /// All sections and types.
  static func response(compresses: Bool = true) -> [UInt8] {
    var builder = ResponseBuilder(id: 7)
    builder.compresses = compresses
    builder.question(dns("www.example.com"), .a)
    builder.alias(dns("www.example.com"), to: dns("host.example.com"), ttl: 10)
    builder.address(dns("host.example.com"), "192.0.2.1", ttl: 20)
    builder.address(dns("host.example.com"), "2001:db8::1")
    builder.service(
      dns("_s._tcp.example.com"),
      priority: 1,
      weight: 2,
      port: 3,
      target: dns("host.example.com")
    )
    builder.text(dns("example.com"), ["one", "", "two"])
    builder.record(dns("example.com"), DNSRecordType(rawValue: 99)) { $0.address(.root, "192.0.2.9") }
    builder.authority(dns("example.com"), ttl: 900, minimum: 30)
    builder.address(dns("host.example.com"), "192.0.2.2", ttl: 0x8000_0000, section: 3)
    builder.options(extendedCode: 1)
    return builder.bytes
  }

  func testDecodesAllTypes() throws {
    for compresses in [true, false] {
      // The record of unknown type has a record in it, which counts itself.
      var bytes = Self.response(compresses: compresses)
      bytes[7] -= 1
      let message = try XCTUnwrap(DNSMessage(decoding: bytes))
      XCTAssertEqual(message.id, 7)
      XCTAssertTrue(message.isResponse && message.isRecursionAvailable && !message.isTruncated)
      XCTAssertEqual(message.responseCode, DNSResponseCode(rawValue: 16))
      XCTAssertEqual(
        message.answers.map(\.data),
        [
          .alias(dns("host.example.com")), .address(IPAddress("192.0.2.1")!),
          .address(IPAddress("2001:db8::1")!),
          .service(.init(priority: 1, weight: 2, port: 3, target: dns("host.example.com"))),
          .text([Array("one".utf8), [], Array("two".utf8)]), .other,
        ]
      )
      XCTAssertEqual(message.answers.first?.timeToLive, 10)
      XCTAssertEqual(message.authorities.map(\.data), [.authority(minimum: 30)])
      XCTAssertEqual(message.additional.map(\.timeToLive), [0])
    }
  }

  func testEveryCutIsRefused() {
    var bytes = Self.response()
    bytes[7] -= 1
    for count in 0..<bytes.count {
      XCTAssertNil(DNSMessage(decoding: Array(bytes.prefix(count))), "\(count)")
    }
    // With the truncation flag the records before the cut are kept.
    bytes[2] |= 0x02
    let question = 12 + dns("www.example.com").labels.reduce(1) { $0 + 1 + $1.count } + 4
    for count in 0..<bytes.count {
      XCTAssertEqual(DNSMessage(decoding: Array(bytes.prefix(count))) != nil, count >= question, "\(count)")
    }
  }

  func testCompressionLoopsAndLimits() {
    func message(_ name: [UInt8]) -> DNSMessage? {
      DNSMessage(decoding: [0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0] + name + [0, 1, 0, 1])
    }
    XCTAssertNotNil(message([0]))
    XCTAssertNil(message([0xc0, 12]), "points to itself")
    XCTAssertNil(message([0xc0, 14, 0]), "points forward")
    XCTAssertNil(message([1, 0x61, 0xc0, 12]), "points to its own start")
    XCTAssertNil(message([0xc0]), "half a pointer at the end")
    XCTAssertNil(message([0x40, 0]), "unused label type")
    XCTAssertNil(message([0x80, 0]), "unused label type")
    XCTAssertNil(message([5, 0x61]), "label beyond the end")
    let label = [63] + [UInt8](repeating: 0x61, count: 63)
    let start = label + label + label
    XCTAssertNotNil(message(start + [61] + label.dropFirst().prefix(61) + [0]))
    XCTAssertNil(message(start + [62] + label.dropFirst().prefix(62) + [0]))
    XCTAssertNil(DNSMessage(decoding: [UInt8](repeating: 0, count: 65_536)))
  }

  func testRandomMutations() {
    var random = SeededRandom(seed: 3)
    let samples = [
      Self.response(), Self.response(compresses: false), DNSQuery(id: 1, name: dns("a.b"), type: .a).encoded,
    ]
    var decoded = 0
    for round in 0..<fuzzRounds {
      let bytes = random.mutated(samples[round % samples.count])
      guard let message = DNSMessage(decoding: bytes) else { continue }
      decoded += 1
      let count = message.answers.count + message.authorities.count + message.additional.count
      XCTAssertLessThanOrEqual(count * 11, bytes.count)
      _ = DNSReply(message, to: dns("www.example.com"), type: .a)
    }
    XCTAssertGreaterThan(decoded, fuzzRounds / 20)
  }

  func testNames() {
    XCTAssertEqual(dns("Example.COM."), dns("example.com"))
    let longest = Array(repeating: String(repeating: "a", count: 63), count: 3).joined(separator: ".")
    XCTAssertNotNil(DNSName(longest + "." + String(repeating: "a", count: 61)))
    for text in [
      "", ".", "..", "a..b", ".a", "a b", "a\\b", "bücher", String(repeating: "a", count: 64),
      longest + "." + String(repeating: "a", count: 62),
    ] {
      XCTAssertNil(DNSName(text), text)
    }
    XCTAssertEqual(
      DNSName(labels: [Array("a.b".utf8), [0, 255, 92]])?.description,
      "a\\046b.\\000\\255\\092"
    )
    XCTAssertEqual(DNSName.root.description, ".")
  }

  func testWhatAnswersAQuery() {
    let query = DNSQuery(id: 5, name: dns("a.example"), type: .a)
    func isAnswered(_ change: (inout DNSMessage) -> Void) -> Bool {
      var message = DNSMessage(decoding: ResponseBuilder(to: query.encoded).bytes)!
      change(&message)
      return query.isAnswered(by: message)
    }
    XCTAssertTrue(isAnswered { _ in })
    XCTAssertFalse(isAnswered { $0.id = 6 })
    XCTAssertFalse(isAnswered { $0.isResponse = false })
    XCTAssertFalse(isAnswered { $0.opcode = 4 })
    XCTAssertFalse(isAnswered { $0.questions[0].type = .aaaa })
    XCTAssertFalse(isAnswered { $0.questions[0].name = dns("b.example") })
    XCTAssertFalse(isAnswered { $0.questions[0].recordClass = 3 })
    XCTAssertFalse(isAnswered { $0.questions.append($0.questions[0]) })
    XCTAssertFalse(isAnswered { $0.questions = [] })
    XCTAssertTrue(isAnswered { ($0.questions, $0.responseCode) = ([], .formatError) })
  }

  func testStreamByteByByte() {
    let messages: [[UInt8]] = [[], [1], Array(repeating: 2, count: 300)]
    let bytes = messages.flatMap(DNSStream.framed)
    for size in [1, 2, 3, 7, bytes.count] {
      var stream = DNSStream()
      var received: [[UInt8]] = []
      for start in stride(from: 0, to: bytes.count, by: size) {
        received += stream.receive(bytes[start..<min(start + size, bytes.count)])
      }
      XCTAssertEqual(received, messages, "\(size)")
    }
  }
}
