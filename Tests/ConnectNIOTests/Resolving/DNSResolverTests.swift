import Connect
import ConnectTesting
import NIOCore
import NIOPosix
import XCTest

@testable import ConnectChannels
@testable import ConnectNIO

/// Answers of name servers over sockets; time is virtual.
final class DNSResolverTests: XCTestCase {
  private let executor = VirtualExecutor()

  private func configuration(
    _ servers: TestDNSServer...,
    hostsFile: String? = nil
  ) -> DNSResolver.Configuration {
    .init(nameServers: ResolverConfiguration(servers: servers.map(\.address)), hostsFile: hostsFile)
  }

  private func watch(_ configuration: DNSResolver.Configuration) -> TestWatch {
    TestWatch(DNSResolver(configuration), on: self.executor)
  }

  private func isPortFree(_ port: Int) async -> Bool {
    let bootstrap = DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    guard let channel = try? await bootstrap.bind(host: "127.0.0.1", port: port).get() else { return false }
    try? await channel.close()
    return true
  }

  // MARK: - Answers

  func testAddressesOfBothFamilies() async throws {
    let server = try await TestDNSServer.start([
      "api.test": [.a("10.0.0.2"), .a("10.0.0.1"), .a("10.0.0.2"), .aaaa("2001:db8::1")]
    ])
    let update = try await self.watch(self.configuration(server)).update()
    XCTAssertEqual(update.addresses, ["[2001:db8::1]:8080", "10.0.0.2:8080", "10.0.0.1:8080"])
    XCTAssertEqual(update.endpoints.map(\.weight), [1, 1, 1])
    XCTAssertEqual(update.timeToLive, .seconds(60))
    XCTAssertNil(update.serviceConfig)
    XCTAssertEqual(server.texts, ["api.test A over UDP", "api.test AAAA over UDP"])
    XCTAssertEqual(Set(server.queries.compactMap(\.source.port)).count, 2, "one port for each query")
    await server.stop()
  }

  func testOnTheEventLoopOfTheChannel() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let watch = TestWatch(DNSResolver(self.configuration(server)), on: EventLoopExecutor(loop))
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    watch.cancel()
    await server.stop()
  }

  func testAliases() async throws {
    let server = try await TestDNSServer.start([
      "api.test": [.cname("b.test")], "b.test": [.cname("c.test")],
      "c.test": [.a("10.0.0.1"), .a("10.0.0.2")],
    ])
    let update = try await self.watch(self.configuration(server)).update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080", "10.0.0.2:8080"])
    await server.stop()
  }

  func testAliasesInALoop() async throws {
    let server = try await TestDNSServer.start([
      "api.test": [.cname("b.test")], "b.test": [.cname("api.test")],
    ])
    let error = try await self.watch(self.configuration(server)).error()
    XCTAssertEqual(error.resolution?.reason, .tooManyAliases)
    await server.stop()
  }

  func testHostsThatNeedNoServer() async throws {
    let resolver = DNSResolver(.init(nameServers: ResolverConfiguration(servers: [])))
    for (origin, address) in [
      (Origin(scheme: .http, host: "192.0.2.1", port: 80), "192.0.2.1:80"),
      (Origin(scheme: .https, host: "2001:db8::1", port: 443), "[2001:db8::1]:443"),
      (Origin(scheme: .unix, host: "/run/a.sock", port: 0), "unix:/run/a.sock"),
    ] {
      let update = try await TestWatch(resolver, origin, on: self.executor).update()
      XCTAssertEqual(update, ResolverUpdate(endpoints: [Endpoint(address)!]))
    }
    let localhost = Origin(scheme: .http, host: "localhost", port: 80)
    let withoutFile = DNSResolver(.init(nameServers: ResolverConfiguration(servers: []), hostsFile: nil))
    let update = try await TestWatch(withoutFile, localhost, on: self.executor).update()
    XCTAssertEqual(update.addresses, ["[::1]:80", "127.0.0.1:80"])
  }

  func testHostsFile() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    try await withTemporaryFolder { folder in
      let path = folder + "/hosts"
      let watch = self.watch(self.configuration(server, hostsFile: path))
      let first = try await watch.update()
      XCTAssertEqual(first.addresses, ["10.0.0.1:8080"], "a file that is missing")
      try "192.0.2.7 other API.test # comment\n::7 api.test\n".write(
        toFile: path,
        atomically: true,
        encoding: .utf8
      )
      let asked = server.queries.count
      self.executor.advance(by: .seconds(60))
      let second = try await watch.update(after: 1)
      XCTAssertEqual(second.addresses, ["192.0.2.7:8080", "[::7]:8080"])
      XCTAssertNil(second.timeToLive)
      XCTAssertEqual(server.queries.count, asked)
    }
    await server.stop()
  }

  func testSearchList() async throws {
    let server = try await TestDNSServer.start(["api.two.test": [.a("10.0.0.2")]])
    var configuration = self.configuration(server)
    configuration.nameServers?.searchDomains = ["one.test", "two.test"]
    let origin = Origin(scheme: .http, host: "api", port: 80)
    let update = try await TestWatch(DNSResolver(configuration), origin, on: self.executor).update()
    XCTAssertEqual(update.addresses, ["10.0.0.2:80"])
    XCTAssertEqual(Set(server.queries.map(\.name)), ["api.one.test", "api.two.test"])
    await server.stop()
  }

  func testNameThatDoesNotExist() async throws {
    let server = try await TestDNSServer.start()
    let watch = self.watch(self.configuration(server))
    let error = try await watch.error()
    XCTAssertEqual(error.code, .unavailable)
    XCTAssertEqual(error.resolution?.reason, .noSuchName)
    let message = error.message ?? ""
    XCTAssertTrue(
      message.hasPrefix("cannot resolve the name of https://api.test:8080: \"api.test\" does not exist"),
      message
    )
    server.replace(["api.test": [.a("10.0.0.1")]])
    self.executor.advance(by: .milliseconds(1_200))
    let update = try await watch.update(after: 1)
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    await server.stop()
  }

  func testEmptyAnswerIsAskedForAgain() async throws {
    let server = try await TestDNSServer.start(["api.test": [.txt(["x"])]])
    let watch = self.watch(self.configuration(server))
    let first = try await watch.update()
    XCTAssertEqual(first, ResolverUpdate(endpoints: [], timeToLive: .seconds(30)))
    server.replace(["api.test": [.a("10.0.0.1")]])
    self.executor.advance(by: .milliseconds(1_200))
    let second = try await watch.update(after: 1)
    XCTAssertEqual(second.addresses, ["10.0.0.1:8080"])
    await server.stop()
  }

  func testTimeToLive() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1"), .aaaa("::1")]])
    let watch = self.watch(self.configuration(server))
    _ = try await watch.update()
    server.replace(["api.test": [.a("10.0.0.1"), .a("10.0.0.2")]])
    self.executor.advance(by: .milliseconds(59_999))
    XCTAssertEqual(server.queries.count, 2)
    self.executor.advance(by: .milliseconds(1))
    let second = try await watch.update(after: 1)
    XCTAssertEqual(second.addresses, ["10.0.0.1:8080", "10.0.0.2:8080"])
    XCTAssertEqual(watch.reports.count, 2)
    await server.stop()
  }

  func testFailingConnectionsAskAgain() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    let watch = self.watch(self.configuration(server))
    _ = try await watch.update()
    watch.resolveAgain()
    watch.resolveAgain()
    self.executor.advance(by: .seconds(30))
    _ = try await watch.update(after: 1)
    self.executor.advance(by: .seconds(29))
    XCTAssertEqual(watch.reports.count, 2)
    await server.stop()
  }

  // MARK: - TCP

  func testTruncatedAnswer() async throws {
    var zone: TestZone = [:]
    let addresses = (1...200).map { "10.0.0.\($0)" }
    zone.records["api.test"] = addresses.map { .a($0) }
    let server = try await TestDNSServer.start(zone)
    let update = try await self.watch(self.configuration(server)).update()
    XCTAssertEqual(update.addresses, addresses.map { "\($0):8080" })
    XCTAssertEqual(
      server.texts,
      ["api.test A over TCP", "api.test A over UDP", "api.test AAAA over UDP"]
    )
    await server.stop()
  }

  /// As many as two answers over TCP can have: more than 4,000 IPv4 addresses do not fit into one of 64 KiB.
  func testFiveThousandAddresses() async throws {
    var zone: TestZone = [:]
    zone.records["api.test"] =
      (0..<4_000).map { .a("10.1.\($0 >> 8).\($0 & 0xff)") }
      + (0..<1_000).map { .aaaa("2001:db8::\(String($0, radix: 16))") }
    let server = try await TestDNSServer.start(zone)
    let update = try await self.watch(self.configuration(server)).update()
    XCTAssertEqual(update.endpoints.count, 5_000)
    XCTAssertEqual(update.addresses.last, "10.1.15.159:8080")
    await server.stop()
  }

  func testConnectionThatIsClosedWithoutAnAnswer() async throws {
    let first = try await TestDNSServer.start(respond: { _, _ in [[]] })
    let second = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    var configuration = self.configuration(first, second)
    configuration.nameServers?.usesTCP = true
    let update = try await self.watch(configuration).update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    XCTAssertTrue(first.queries.allSatisfy(\.isTCP))
    await first.stop()
    await second.stop()
  }

  // MARK: - Bad servers

  func testServerFailure() async throws {
    let fails: TestDNSServer.Respond = { _, answer in
      var answer = answer
      answer[3] = 0x82
      return [answer]
    }
    let first = try await TestDNSServer.start(respond: fails)
    let second = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    let update = try await self.watch(self.configuration(first, second)).update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    let error = try await self.watch(self.configuration(first)).error()
    XCTAssertEqual(error.resolution?.reason, .serverFailure)
    XCTAssertTrue(error.message?.contains("\(first.address) answered SERVFAIL") == true, error.message ?? "")
    await first.stop()
    await second.stop()
  }

  func testSilentServer() async throws {
    let silent = try await TestDNSServer.start(respond: { _, _ in [] })
    let second = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    let watch = self.watch(self.configuration(silent, second))
    try await eventually("both queries") { silent.queries.count == 2 }
    self.executor.advance(by: .seconds(5))
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    await silent.stop()
    await second.stop()
  }

  func testNoServerAnswers() async throws {
    let silent = try await TestDNSServer.start(respond: { _, _ in [] })
    let watch = self.watch(self.configuration(silent))
    for attempt in 1...2 {
      try await eventually("the queries of attempt \(attempt)") { silent.queries.count == attempt * 2 }
      self.executor.advance(by: .seconds(5))
    }
    let error = try await watch.error()
    XCTAssertEqual(error.resolution?.reason, .unreachable)
    await silent.stop()
  }

  func testServerThatIsNotThere() async throws {
    let gone = try await TestDNSServer.start()
    await gone.stop()
    let second = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    // Time stands still: the refusal is told by the system.
    let update = try await self.watch(self.configuration(gone, second)).update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    let unusable = ResolverConfiguration(servers: [.ip(.loopbackIPv4, port: 70_000)])
    let error = try await self.watch(.init(nameServers: unusable, hostsFile: nil)).error()
    XCTAssertEqual(error.resolution?.reason, .unreachable)
    await second.stop()
  }

  func testWhatIsNoAnswerIsIgnored() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")], "evil.test": [.a("6.6.6.6")]]) {
      query,
      answer in
      var wrongID = answer
      wrongID[1] ^= 1
      let other = DNSQuery(id: query.message.id, name: DNSName("evil.test")!, type: .a)
      let otherQuestion = TestZone(dictionaryLiteral: ("evil.test", [.a("6.6.6.6")]))
        .answer(to: DNSMessage(decoding: other.encoded)!, isTCP: false)
      return [[], [1, 2, 3], Array(answer.dropLast()), wrongID, otherQuestion, answer]
    }
    let watch = self.watch(self.configuration(server))
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    XCTAssertEqual(server.queries.count, 2)
    await server.stop()
  }

  /// Even one who has seen the query cannot answer it from another address.
  func testDatagramsOfOthersDoNotArrive() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]], respond: { _, _ in [] })
    let stranger = try await TestDNSServer.start(["api.test": [.a("6.6.6.6")]])
    let watch = self.watch(self.configuration(server))
    try await eventually("both queries") { server.queries.count == 2 }
    for query in server.queries { try await stranger.send(stranger.answer(to: query), for: query) }
    for query in server.queries { try await server.send(server.answer(to: query), for: query) }
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    await server.stop()
    await stranger.stop()
  }

  func testTimeLimitOfALook() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]]) { query, answer in
      query.type == .a ? [answer] : []
    }
    var configuration = self.configuration(server)
    configuration.timeout = .seconds(3)
    let watch = self.watch(configuration)
    try await eventually("both queries") { server.queries.count == 2 }
    let answered = try XCTUnwrap(server.queries.first { $0.type == .a }?.source.port)
    try await eventually("the answer has arrived") { await self.isPortFree(answered) }
    self.executor.advance(by: .seconds(3))
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    await server.stop()
  }

  // MARK: - Cancelling

  func testCancellingClosesSockets() async throws {
    let silent = try await TestDNSServer.start(respond: { _, _ in [] })
    let watch = self.watch(self.configuration(silent))
    try await eventually("both queries") { silent.queries.count == 2 }
    let ports = silent.queries.compactMap(\.source.port)
    for port in ports {
      let isFree = await self.isPortFree(port)
      XCTAssertFalse(isFree)
    }
    watch.cancel()
    for port in ports {
      try await eventually("port \(port) is free") { await self.isPortFree(port) }
    }
    XCTAssertEqual(self.executor.scheduled, [])
    XCTAssertTrue(watch.reports.isEmpty)
    await silent.stop()
  }

  func testCancellingClosesConnections() async throws {
    let silent = try await TestDNSServer.start(respond: { _, _ in [] })
    var configuration = self.configuration(silent)
    configuration.nameServers?.usesTCP = true
    let watch = self.watch(configuration)
    try await eventually("both queries") { silent.queries.count == 2 && silent.openConnections == 2 }
    watch.cancel()
    try await eventually("connections are closed") { silent.openConnections == 0 }
    await silent.stop()
  }

  func testSocketsAreClosedAfterAnAnswer() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    let watch = self.watch(self.configuration(server))
    _ = try await watch.update()
    for port in server.queries.compactMap(\.source.port) {
      try await eventually("port \(port) is free") { await self.isPortFree(port) }
    }
    XCTAssertEqual(self.executor.scheduled, [.seconds(60)])
    await server.stop()
  }
}
