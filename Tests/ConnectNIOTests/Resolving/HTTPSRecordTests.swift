import Connect
import ConnectTesting
import NIOCore
import NIOPosix
import XCTest

@testable import ConnectChannels
@testable import ConnectNIO

/// Queries for HTTPS records beside those for addresses, over sockets.
final class HTTPSRecordTests: XCTestCase {
  private let executor = VirtualExecutor()
  private let alternatives = SharedAlternatives()
  private let origin = Origin(scheme: .https, host: "api.test", port: 443)
  private let h3: [(UInt16, [UInt8])] = [(1, [2, 104, 50, 2, 104, 51])]

  private func resolver(_ server: TestDNSServer, looks: Bool = true) -> any NameResolver {
    let configuration = DNSResolver.Configuration(
      nameServers: ResolverConfiguration(servers: [server.address]),
      hostsFile: nil
    )
    let resolver = DNSResolver(configuration)
    return looks ? resolver.looking(for: self.alternatives) : resolver
  }

  private func port(_ origin: Origin? = nil) async throws -> Int? {
    let end = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < end {
      self.executor.runUntilIdle()
      let server = EndpointAddress.ip(.loopbackIPv4, port: 443)
      let port = self.alternatives.port(for: origin ?? self.origin, at: server, now: self.executor.now)
      if let port { return port }
      try await Task.sleep(for: .milliseconds(2))
    }
    return nil
  }

  func testRecordIsFoundBesideTheAddresses() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1"), .https(parameters: self.h3)]])
    let watch = TestWatch(self.resolver(server), self.origin, on: self.executor)
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:443"])
    let port = try await self.port()
    XCTAssertEqual(port, 443)
    XCTAssertEqual(
      server.texts,
      ["api.test A over UDP", "api.test AAAA over UDP", "api.test HTTPS over UDP"]
    )
    watch.cancel()
    await server.stop()
  }

  func testPortsOfTheirOwn() async throws {
    let origin = Origin(scheme: .https, host: "api.test", port: 9_000)
    let server = try await TestDNSServer.start([
      "api.test": [.a("10.0.0.1")],
      "_9000._https.api.test": [.https(target: "api.test", parameters: self.h3 + [(3, [0x20, 0xfb])])],
    ])
    let watch = TestWatch(self.resolver(server), origin, on: self.executor)
    _ = try await watch.update()
    let port = try await self.port(origin)
    XCTAssertEqual(port, 8_443)
    watch.cancel()
    await server.stop()
  }

  /// The query does not outlive the watch, though the addresses are there.
  func testTheEndOfTheWatchEndsTheQuery() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]]) { query, answer in
      query.type == .https ? [] : [answer]
    }
    let watch = TestWatch(self.resolver(server), self.origin, on: self.executor)
    _ = try await watch.update()
    XCTAssertFalse(self.executor.scheduled.isEmpty)
    self.executor.sync { watch.cancel() }
    self.executor.runUntilIdle()
    XCTAssertEqual(self.executor.scheduled, [])
    await server.stop()
  }

  /// Servers that do not know the type may say nothing at all.
  func testAddressesDoNotWait() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]]) { query, answer in
      query.type == .https ? [] : [answer]
    }
    let watch = TestWatch(self.resolver(server), self.origin, on: self.executor)
    let update = try await watch.update()
    XCTAssertEqual(update.addresses, ["10.0.0.1:443"])
    XCTAssertEqual(self.executor.now, .zero)
    // It is given up after a while.
    self.executor.advance(by: .seconds(6))
    self.executor.runUntilIdle()
    watch.cancel()
    await server.stop()
  }

  func testWhoDoesNotLookDoesNotAsk() async throws {
    let zone: TestZone = ["api.test": [.a("10.0.0.1"), .https(parameters: self.h3)]]
    for (looks, scheme) in [(false, Origin.Scheme.https), (true, .http)] {
      let server = try await TestDNSServer.start(zone)
      let origin = Origin(scheme: scheme, host: "api.test", port: 443)
      let watch = TestWatch(self.resolver(server, looks: looks), origin, on: self.executor)
      _ = try await watch.update()
      XCTAssertEqual(server.texts, ["api.test A over UDP", "api.test AAAA over UDP"])
      watch.cancel()
      await server.stop()
    }
  }

  func testSettingTheResolver() {
    var configuration = ChannelConfiguration(resolver: DNSResolver())
    configuration.look(for: self.alternatives)
    XCTAssertNotNil((configuration.resolver as? DNSResolver)?.alternatives)
    var other = ChannelConfiguration(resolver: StaticResolver([]))
    other.look(for: self.alternatives)
    XCTAssertTrue(other.resolver is StaticResolver)
  }
}
