import Connect
import ConnectTesting
import Logging
import Synchronization
import XCTest

@testable import ConnectChannels
@testable import ConnectNIO

/// SRV records and service configs, from name servers over sockets.
final class DNSServiceTests: XCTestCase {
  private static let service = "_grpc._tcp.api.test"

  private let executor = VirtualExecutor()

  private func configuration(_ server: TestDNSServer, readsServiceConfig: Bool = false)
    -> DNSResolver.Configuration
  {
    .init(
      nameServers: ResolverConfiguration(servers: [server.address]),
      hostsFile: nil,
      readsServiceConfig: readsServiceConfig
    )
  }

  private func watch(service server: TestDNSServer) -> TestWatch {
    TestWatch(DNSResolver.service(Self.service, self.configuration(server)), on: self.executor)
  }

  // MARK: - SRV

  private static let zone: TestZone = [
    service: [
      .srv(priority: 1, weight: 30, port: 1001, target: "a.test"),
      .srv(priority: 1, weight: 0, port: 1002, target: "b.test"),
      .srv(priority: 1, weight: 9, port: 1003, target: "c.test"),
      .srv(priority: 2, weight: 50, port: 1004, target: "d.test"),
    ],
    "a.test": [.a("10.0.0.1"), .aaaa("::1")],
    "b.test": [.a("10.0.0.2")],
    "c.test": [.a("10.0.0.3"), .a("10.0.0.4")],
    "d.test": [.a("10.0.0.5")],
  ]

  private func check(_ update: ResolverUpdate) {
    XCTAssertEqual(
      update.addresses,
      ["[::1]:1001,10.0.0.1:1001", "10.0.0.2:1002", "10.0.0.3:1003", "10.0.0.4:1003"]
    )
    XCTAssertEqual(update.endpoints.map(\.weight), [30, 1, 4, 4])
    XCTAssertEqual(update.timeToLive, .seconds(60))
  }

  func testTargetsAreAskedFor() async throws {
    let server = try await TestDNSServer.start(Self.zone)
    let update = try await self.watch(service: server).update()
    self.check(update)
    XCTAssertEqual(server.queries.count, 9)
    await server.stop()
  }

  func testAdditionalRecordsSaveQueries() async throws {
    var zone = Self.zone
    zone.addsAddresses = true
    let server = try await TestDNSServer.start(zone)
    let update = try await self.watch(service: server).update()
    self.check(update)
    XCTAssertEqual(server.texts, ["\(Self.service) SRV over UDP"])
    await server.stop()
  }

  func testNextPriorityIfTheFirstHasNoAddresses() async throws {
    var zone = Self.zone
    for target in ["a.test", "b.test", "c.test"] { zone.records[target] = nil }
    let server = try await TestDNSServer.start(zone)
    let update = try await self.watch(service: server).update()
    XCTAssertEqual(update.addresses, ["10.0.0.5:1004"])
    XCTAssertEqual(update.endpoints.map(\.weight), [50])
    await server.stop()
  }

  func testServiceThatIsNotAvailable() async throws {
    let server = try await TestDNSServer.start([Self.service: [.srv(port: 0, target: ".")]])
    let watch = self.watch(service: server)
    let update = try await watch.update()
    XCTAssertEqual(update, ResolverUpdate(endpoints: [], timeToLive: .seconds(60)))
    await server.stop()
  }

  // MARK: - Service configs

  private final class LogMessages: LogHandler {
    let messages = Mutex<[String]>([])
    var metadata: Logger.Metadata {
      get { [:] }
      set {}
    }
    var logLevel: Logger.Level {
      get { .trace }
      set {}
    }
    subscript(metadataKey _: String) -> Logger.Metadata.Value? {
      get { nil }
      set {}
    }

    func log(event: LogEvent) {
      self.messages.withLock { $0.append("\(event.level): \(event.message) \(event.metadata ?? [:])") }
    }
  }

  private static let configName = "_grpc_config.api.test"

  private func text(_ json: String) -> [TestZone.Record] {
    let text = "grpc_config=" + json
    return [.txt(["other=1"]), .txt([String(text.prefix(20)), String(text.dropFirst(20))])]
  }

  func testServiceConfig() async throws {
    var zone: TestZone = ["api.test": [.a("10.0.0.1")]]
    zone.records[Self.configName] = self.text(
      #"[{"clientLanguage":["go"],"serviceConfig":{}},{"serviceConfig":{"loadBalancingPolicy":"round_robin"}}]"#
    )
    let server = try await TestDNSServer.start(zone)
    let configuration = self.configuration(server, readsServiceConfig: true)
    let watch = TestWatch(DNSResolver(configuration), on: self.executor)
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:8080"])
    let config = try ServiceConfig(json: try XCTUnwrap(update.serviceConfig))
    XCTAssertEqual(config.loadBalancing, .roundRobin)
    await server.stop()
  }

  func testServiceConfigIsNotLookedForByDefault() async throws {
    var zone: TestZone = ["api.test": [.a("10.0.0.1")]]
    zone.records[Self.configName] = self.text(#"[{"serviceConfig":{}}]"#)
    let server = try await TestDNSServer.start(zone)
    let watch = TestWatch(DNSResolver(self.configuration(server)), on: self.executor)
    let update = try await watch.update()
    XCTAssertNil(update.serviceConfig)
    XCTAssertEqual(server.texts, ["api.test A over UDP", "api.test AAAA over UDP"])
    await server.stop()
  }

  func testMalformedServiceConfigLeavesTheLastGoodOne() async throws {
    var zone: TestZone = ["api.test": [.a("10.0.0.1")]]
    zone.records[Self.configName] = self.text(#"[{"serviceConfig":{"a":1}}]"#)
    let server = try await TestDNSServer.start(zone)
    let log = LogMessages()
    let configuration = self.configuration(server, readsServiceConfig: true)
    let resolver = DNSResolver(configuration, logger: Logger(label: "test") { _ in log })
    let watch = TestWatch(resolver, on: self.executor)
    let first = try await watch.update()
    XCTAssertEqual(first.serviceConfig, #"{"a":1}"#)

    zone.records[Self.configName] = self.text(#"[{"serviceConfig":"#)
    server.replace(zone)
    self.executor.advance(by: .seconds(60))
    let second = try await watch.update(after: 1)
    XCTAssertEqual(second, first)
    let messages = log.messages.withLock { $0 }
    XCTAssertEqual(messages.count, 1)
    XCTAssertTrue(messages.first?.contains("https://api.test:8080") == true, "\(messages)")

    zone.records[Self.configName] = nil
    server.replace(zone)
    self.executor.advance(by: .seconds(60))
    let third = try await watch.update(after: 2)
    XCTAssertNil(third.serviceConfig, "the record is gone")
    await server.stop()
  }
}
