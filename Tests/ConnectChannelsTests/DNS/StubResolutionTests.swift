import XCTest

@testable import ConnectChannels

final class StubResolutionTests: XCTestCase {
  func testBothFamiliesInParallel() {
    var harness = StubHarness(.addresses(of: "a.example"))
    XCTAssertEqual(harness.open.count, 2)
    XCTAssertEqual(harness.open[0].server.description, "10.0.0.1:53")
    XCTAssertEqual(harness.open[0].timeout, .seconds(5))
    harness.answer("a.example", .a) {
      $0.address(dns("a.example"), "192.0.2.1", ttl: 30)
      $0.address(dns("a.example"), "192.0.2.1", ttl: 30)
    }
    XCTAssertTrue(harness.results.isEmpty)
    harness.answer("a.example", .aaaa) { $0.address(dns("a.example"), "2001:db8::1", ttl: 20) }
    XCTAssertEqual(harness.addresses, ["2001:db8::1", "192.0.2.1"])
    XCTAssertEqual(harness.answer?.timeToLive, .seconds(20))
    XCTAssertEqual(harness.answer?.hosts.first?.name, "a.example")
  }

  func testIDsDiffer() {
    let ids = (0..<50).map {
      StubHarness(.addresses(of: "a"), seed: $0).sent.map { [$0.bytes[0], $0.bytes[1]] }
    }
    XCTAssertGreaterThan(Set(ids.joined()).count, 90)
  }

  func testOneFamilyIsEnough() {
    var harness = StubHarness(.addresses(of: "a.example"))
    harness.answer("a.example", .aaaa) { $0.authority(dns("example")) }
    harness.answer("a.example", .a) { $0.address(dns("a.example"), "192.0.2.1") }
    XCTAssertEqual(harness.addresses, ["192.0.2.1"])
  }

  func testAFailureBehindAddressesOfTheOtherFamilyIsNotRepeated() {
    var harness = StubHarness(.addresses(of: "a.example"))
    harness.answer("a.example", .a) { $0.address(dns("a.example"), "192.0.2.1") }
    harness.timeOut(harness.open[0])
    XCTAssertEqual(harness.addresses, ["192.0.2.1"])
    XCTAssertEqual(harness.sent.count, 2)
  }

  func testNextServerAfterFailures() {
    var harness = StubHarness(.texts(of: "a.example"), StubHarness.configuration(servers: 3))
    harness.answer("a.example", .txt, code: .serverFailure)
    harness.timeOut(harness.open[0])
    harness.fail(harness.open[1])
    XCTAssertEqual(harness.open.map(\.server.description), ["10.0.0.2:53", "10.0.0.1:53"])
    harness.answer("a.example", .txt) { $0.text(dns("a.example"), ["he", "llo"]) }
    XCTAssertEqual(harness.answer?.texts, [Array("hello".utf8)])
  }

  func testALateAnswerCounts() {
    var harness = StubHarness(.texts(of: "a.example"))
    let first = harness.open[0]
    harness.timeOut(first)
    harness.timeOut(first)
    XCTAssertEqual(harness.sent.count, 2)
    harness.answer(first) { $0.text(dns("a.example"), ["x"]) }
    XCTAssertEqual(harness.answer?.texts, [[0x78]])
  }

  func testForgedAnswersAreIgnored() {
    var harness = StubHarness(.texts(of: "a.example"))
    let query = harness.open[0]
    var other = ResponseBuilder(to: query.bytes).bytes
    other[1] ^= 1
    harness.receive(other, for: query)
    harness.receive([], for: query)
    harness.receive(
      ResponseBuilder(to: DNSQuery(id: 1, name: dns("b"), type: .txt).encoded).bytes,
      for: query
    )
    XCTAssertEqual(harness.sent.count, 1)
    harness.answer(query) { $0.text(dns("a.example"), ["x"]) }
    XCTAssertEqual(harness.answer?.texts.count, 1)
  }

  func testTruncationGoesToTCP() {
    var harness = StubHarness(.texts(of: "a.example"))
    harness.answer("a.example", .txt, flags: 0x8380)
    XCTAssertEqual(harness.open.map(\.transport), [.tcp])
    XCTAssertEqual(harness.open.map(\.server.description), ["10.0.0.1:53"])
    harness.answer("a.example", .txt, flags: 0x8380)
    XCTAssertEqual(harness.open.map(\.transport), [.udp], "truncated over TCP: the next server")
    harness.answer("a.example", .txt, flags: 0x8380)
    harness.receive([1, 2, 3], for: harness.open[0])
    XCTAssertEqual(
      harness.open.map(\.server.description),
      ["10.0.0.1:53"],
      "no DNS over TCP: the next server"
    )
  }

  func testAttemptsAreBounded() {
    for (attempts, count) in [(Int.min, 2), (Int.max, 10)] {
      var harness = StubHarness(.texts(of: "a"), StubHarness.configuration(servers: 2, attempts: attempts))
      for _ in 0..<20 {
        if let query = harness.open.last { harness.timeOut(query) }
      }
      XCTAssertEqual(harness.sent.count, count)
      XCTAssertEqual(harness.error?.reason, .unreachable)
    }
  }

  /// As dnslib sends it.
  func testTruncatedAnswerWithoutAQuestion() {
    var harness = StubHarness(.texts(of: "a.example"))
    let query = harness.open[0]
    let id = DNSMessage(decoding: query.bytes)!.id
    harness.receive(ResponseBuilder(id: id).bytes, for: query)
    harness.receive(ResponseBuilder(id: id ^ 1, flags: 0x8380).bytes, for: query)
    XCTAssertEqual(harness.open.map(\.transport), [.udp], "neither truncated nor of this query")
    harness.receive(ResponseBuilder(id: id, flags: 0x8380).bytes, for: query)
    XCTAssertEqual(harness.open.map(\.transport), [.tcp])
  }

  func testServersWithoutEDNS() {
    var harness = StubHarness(.texts(of: "a.example"))
    let query = harness.open[0]
    harness.receive(
      ResponseBuilder(id: DNSMessage(decoding: query.bytes)!.id, code: .formatError).bytes,
      for: query
    )
    XCTAssertEqual(harness.open.map(\.server.description), ["10.0.0.1:53"])
    XCTAssertNil(DNSMessage(decoding: harness.open[0].bytes)?.datagramSize)
    harness.answer("a.example", .txt, code: .formatError)
    XCTAssertEqual(harness.open.map(\.server.description), ["10.0.0.2:53"])
  }

  func testAliases() {
    var harness = StubHarness(.addresses(of: "a.example"))
    harness.answer("a.example", .aaaa) {
      $0.alias(dns("a.example"), to: dns("b.example"), ttl: 9)
      $0.authority(dns("example"))
    }
    harness.answer("a.example", .a) { $0.alias(dns("a.example"), to: dns("b.example"), ttl: 9) }
    harness.answer("b.example", .a) { $0.address(dns("b.example"), "192.0.2.1", ttl: 100) }
    XCTAssertEqual(harness.addresses, ["192.0.2.1"])
    XCTAssertEqual(harness.answer?.timeToLive, .seconds(9))
    XCTAssertEqual(harness.answer?.hosts.first?.name, "a.example")

    harness = StubHarness(.texts(of: "a"))
    for index in 0..<100 where harness.results.isEmpty {
      let query = harness.open[0]
      harness.answer(query) { $0.alias(StubHarness.question(query).name, to: dns("x\(index)")) }
    }
    XCTAssertEqual(harness.error?.reason, .tooManyAliases)
    XCTAssertEqual(harness.sent.count, 9)
  }

  func testSearchList() {
    let configuration = StubHarness.configuration(search: ["x.example", "example"])
    var harness = StubHarness(.addresses(of: "host"), configuration)
    for type in [DNSRecordType.a, .aaaa] {
      harness.answer("host.x.example", type, code: .noSuchName) { $0.authority(dns("example")) }
    }
    for type in [DNSRecordType.a, .aaaa] { harness.answer("host.example", type, code: .serverFailure) }
    for type in [DNSRecordType.a, .aaaa] { harness.answer("host.example", type, code: .refused) }
    for type in [DNSRecordType.a, .aaaa] { harness.answer("host.example", type, code: .refused) }
    for type in [DNSRecordType.a, .aaaa] { harness.answer("host.example", type, code: .refused) }
    harness.answer("host", .a, code: .noSuchName)
    harness.answer("host", .aaaa, code: .noSuchName)
    XCTAssertEqual(harness.error?.reason, .serverFailure)
    XCTAssertTrue(harness.error?.message.contains("10.0.0.1:53 answered REFUSED") ?? false)

    harness = StubHarness(.addresses(of: "host"), configuration)
    for suffix in [".x.example", ".example", ""] {
      harness.answer("host" + suffix, .a, code: .noSuchName) { $0.authority(dns("example"), minimum: 12) }
      harness.answer("host" + suffix, .aaaa, code: .noSuchName) { $0.authority(dns("example"), minimum: 12) }
    }
    XCTAssertEqual(harness.error?.reason, .noSuchName)
    XCTAssertEqual(harness.error?.isNegative, true)
    XCTAssertEqual(harness.error?.timeToLive, .seconds(12))
    XCTAssertEqual(
      harness.error?.message,
      "\"host\" does not exist in DNS (tried: host.x.example, host.example, host); check its spelling and the "
        + "search list"
    )
  }

  func testNegativeAnswers() {
    var harness = StubHarness(.addresses(of: "a.example"))
    harness.answer("a.example", .a, code: .noSuchName)
    harness.answer("a.example", .aaaa) { $0.authority(dns("example"), minimum: 3) }
    XCTAssertEqual(harness.error?.reason, .noRecords)
    XCTAssertEqual(harness.error?.timeToLive, .seconds(3))
  }

  func testSilenceEndsTheSearch() {
    var harness = StubHarness(.texts(of: "host"), StubHarness.configuration(search: ["x"]))
    for _ in 0..<4 {
      XCTAssertTrue(harness.results.isEmpty)
      harness.timeOut(harness.open[harness.open.count - 1])
    }
    XCTAssertEqual(harness.error?.reason, .unreachable)
    XCTAssertTrue(harness.error?.message.contains("10.0.0.2:53 did not answer in time over UDP") ?? false)
  }

  func testSilenceAboutAnAliasEndsTheSearch() {
    var harness = StubHarness(.texts(of: "host"), StubHarness.configuration(search: ["x"]))
    harness.answer("host.x", .txt) { $0.alias(dns("host.x"), to: dns("other.x")) }
    for _ in 0..<4 { harness.timeOut(harness.open[harness.open.count - 1]) }
    XCTAssertEqual(harness.error?.reason, .unreachable)
  }

  func testNothingToAsk() {
    XCTAssertEqual(StubHarness(.addresses(of: "192.0.2.1")).addresses, ["192.0.2.1"])
    XCTAssertNil(StubHarness(.addresses(of: "192.0.2.1")).answer?.timeToLive)
    XCTAssertEqual(StubHarness(.addresses(of: "localhost")).addresses, ["::1", "127.0.0.1"])
    let hosts = HostsFile(parsing: "192.0.2.7 db")
    XCTAssertEqual(StubHarness(.addresses(of: "DB"), hosts: hosts).addresses, ["192.0.2.7"])
    XCTAssertEqual(StubHarness(.addresses(of: "a..b")).error?.reason, .invalidName)
    XCTAssertEqual(
      StubHarness(.texts(of: "a"), ResolverConfiguration(servers: [])).error?.reason,
      .unreachable
    )
  }

  func testRotation() {
    var configuration = StubHarness.configuration(servers: 3)
    configuration.rotatesServers = true
    let first = Set((0..<40).map { StubHarness(.texts(of: "a"), configuration, seed: $0).open[0].server })
    XCTAssertEqual(first.count, 3)
  }

  func testCancelStopsEverything() {
    var harness = StubHarness(.addresses(of: "a.example"))
    harness.run(harness.resolution.cancel())
    XCTAssertTrue(harness.open.isEmpty && harness.results.isEmpty && harness.resolution.isFinished)
    harness.timeOut(harness.sent[0])
    XCTAssertEqual(harness.sent.count, 2)
  }

  func testExpiryGivesWhatIsThere() {
    var harness = StubHarness(.addresses(of: "a.example"))
    harness.answer("a.example", .a) { $0.address(dns("a.example"), "192.0.2.1") }
    harness.run(harness.resolution.expire())
    XCTAssertEqual(harness.addresses, ["192.0.2.1"])
    harness.run(harness.resolution.expire())

    harness = StubHarness(.addresses(of: "a.example"))
    harness.answer("a.example", .a, code: .serverFailure)
    harness.run(harness.resolution.expire())
    XCTAssertEqual(harness.error?.reason, .unreachable)

    harness = StubHarness(.services(of: self.service))
    harness.answer(self.service, .srv) {
      for index in 0..<20 { $0.service(dns(self.service), port: 1, target: dns("t\(index)")) }
    }
    for type in [DNSRecordType.a, .aaaa] {
      harness.answer("t1", type) { if type == .a { $0.address(dns("t1"), "192.0.2.1") } }
    }
    harness.answer("t2", .a) { $0.address(dns("t2"), "192.0.2.2") }
    harness.run(harness.resolution.expire())
    XCTAssertEqual(harness.answer?.hosts.map(\.name), ["t1", "t2"])

    harness = StubHarness(.services(of: self.service))
    harness.run(harness.resolution.expire())
    XCTAssertEqual(harness.error?.reason, .unreachable)
  }

  // MARK: - Services

  private let service = "_grpc._tcp.example"

  func testServiceInOrderOfPriority() {
    var harness = StubHarness(.services(of: self.service), hosts: HostsFile(parsing: "192.0.2.9 c.example"))
    harness.answer(self.service, .srv) {
      $0.service(dns(self.service), priority: 5, weight: 1, port: 80, target: dns("a.example"), ttl: 100)
      $0.service(dns(self.service), priority: 1, weight: 2, port: 81, target: dns("b.example"), ttl: 90)
      $0.service(dns(self.service), priority: 1, weight: 3, port: 82, target: dns("c.example"), ttl: 90)
      $0.service(dns(self.service), priority: 1, weight: 4, port: 83, target: dns("d.example"), ttl: 90)
      $0.service(dns(self.service), priority: 5, weight: 5, port: 84, target: dns("a.example"), ttl: 90)
      $0.address(dns("b.example"), "192.0.2.2", ttl: 70, section: 3)
      $0.address(dns("b.example"), "2001:db8::2", ttl: 80, section: 3)
      $0.address(dns("unasked.example"), "192.0.2.3", ttl: 1, section: 3)
    }
    XCTAssertEqual(harness.open.count, 4, "A and AAAA of a and d")
    harness.answer("a.example", .a) { $0.address(dns("a.example"), "192.0.2.1", ttl: 60) }
    harness.answer("a.example", .aaaa)
    harness.answer("d.example", .a, code: .noSuchName)
    harness.answer("d.example", .aaaa, code: .noSuchName)
    XCTAssertEqual(
      harness.answer?.hosts.map { "\($0.priority) \($0.weight) \($0.name):\($0.port ?? 0) \($0.addresses)" },
      [
        "1 2 b.example:81 [2001:db8::2, 192.0.2.2]", "1 3 c.example:82 [192.0.2.9]",
        "5 1 a.example:80 [192.0.2.1]", "5 5 a.example:84 [192.0.2.1]",
      ]
    )
    XCTAssertEqual(harness.answer?.timeToLive, .seconds(60))
  }

  func testServiceFailures() {
    var harness = StubHarness(.services(of: self.service))
    harness.answer(self.service, .srv) { $0.service(dns(self.service), port: 0, target: .root) }
    XCTAssertEqual(harness.error?.reason, .serviceUnavailable)

    harness = StubHarness(.services(of: self.service))
    harness.answer(self.service, .srv, code: .noSuchName)
    XCTAssertEqual(harness.error?.reason, .noSuchName)

    harness = StubHarness(.services(of: self.service))
    harness.answer(self.service, .srv) { $0.service(dns(self.service), port: 1, target: dns("a.example")) }
    harness.answer("a.example", .a, code: .noSuchName)
    harness.answer("a.example", .aaaa, code: .noSuchName)
    XCTAssertEqual(harness.error?.reason, .noSuchName)
    XCTAssertTrue(harness.error?.message.contains("no target of the service") ?? false)
  }

  func testManyTargetsAreResolvedAFewAtATime() {
    var harness = StubHarness(.services(of: self.service))
    harness.answer(self.service, .srv) {
      for index in 0..<1_100 { $0.service(dns(self.service), port: 1, target: dns("t\(index)")) }
    }
    while harness.results.isEmpty, let query = harness.open.first {
      XCTAssertLessThanOrEqual(harness.open.count, 16)
      let question = StubHarness.question(query)
      harness.answer(query) { if question.type == .a { $0.address(question.name, "192.0.2.1") } }
    }
    XCTAssertEqual(harness.answer?.hosts.count, 1_024)
  }
}
