import Connect
import ConnectChannels
import ConnectNIO
import ConnectTesting
import LoopbackServer
import XCTest

/// Names from a name server that others wrote: dnslib.
final class ThirdPartyNamesTests: XCTestCase {
  private func update(
    _ host: String,
    service: String? = nil,
    readsServiceConfig: Bool = false
  ) async throws -> ResolverUpdate {
    let server = try await PythonServer.shared(.names)
    let address = try XCTUnwrap(EndpointAddress("127.0.0.1:\(server.port("dns"))"))
    let configuration = DNSResolver.Configuration(
      nameServers: ResolverConfiguration(servers: [address], searchDomains: ["example.test"]),
      hostsFile: nil,
      readsServiceConfig: readsServiceConfig
    )
    let resolver =
      if let service { DNSResolver.service(service, configuration) } else { DNSResolver(configuration) }
    let executor = VirtualExecutor()
    let reports = Recorder<Result<ResolverUpdate, ConnectError>>()
    let watches = Recorder<any ResolverWatch>()
    executor.execute {
      let origin = Origin(scheme: .http, host: host, port: 80)
      watches.record(resolver.watch(origin, on: executor) { reports.record($0) })
    }
    let report = try await reports.wait(for: 1, of: "reports")[0]
    executor.sync { watches.values.first?.cancel() }
    return try report.get()
  }

  private func texts(_ update: ResolverUpdate) -> [String] {
    update.endpoints.map(\.description).sorted()
  }

  func testAddresses() async throws {
    let one = try await self.update("one.example.test")
    XCTAssertEqual(self.texts(one), ["10.1.0.1:80"])
    XCTAssertEqual(one.timeToLive, .seconds(20))
    let both = try await self.update("both")
    XCTAssertEqual(self.texts(both), ["10.2.0.1:80", "10.2.0.2:80", "[2001:db8::2]:80"])
    XCTAssertEqual(both.timeToLive, .seconds(25))
  }

  func testAliases() async throws {
    let alias = try await self.update("alias.example.test.")
    XCTAssertEqual(self.texts(alias), ["10.2.0.1:80", "10.2.0.2:80", "[2001:db8::2]:80"])
    XCTAssertEqual(alias.timeToLive, .seconds(10))
  }

  func testTruncatedAnswer() async throws {
    let many = try await self.update("many.example.test")
    XCTAssertEqual(many.endpoints.count, 1_000)
  }

  func testNoAddresses() async throws {
    let text = try await self.update("text.example.test.")
    XCTAssertEqual(text, ResolverUpdate(endpoints: [], timeToLive: .seconds(15)))
    do {
      _ = try await self.update("missing.example.test.")
      XCTFail("it does not exist")
    } catch let error as ConnectError {
      XCTAssertEqual(error.code, .unavailable)
      XCTAssertEqual((error.exception as? ResolutionError)?.reason, .noSuchName)
    }
  }

  func testService() async throws {
    let service = try await self.update("ignored", service: "_grpc._tcp.example.test")
    XCTAssertEqual(
      self.texts(service),
      ["10.1.0.1:8001", "10.2.0.1:8002", "10.2.0.2:8002", "[2001:db8::2]:8002"]
    )
    XCTAssertEqual(service.endpoints.map(\.weight).sorted(), [10, 10, 10, 70])
    XCTAssertEqual(service.timeToLive, .seconds(10), "also of the targets that are left out")
  }

  func testServiceConfig() async throws {
    let one = try await self.update("one.example.test", readsServiceConfig: true)
    let config = try ServiceConfig(json: try XCTUnwrap(one.serviceConfig))
    XCTAssertEqual(config.loadBalancing, .roundRobin)
    XCTAssertEqual(one.timeToLive, .seconds(20))
  }
}
