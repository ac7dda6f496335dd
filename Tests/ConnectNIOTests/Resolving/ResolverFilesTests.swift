import ConnectChannels
import NIOCore
import XCTest

@testable import ConnectNIO

final class ResolverFilesTests: XCTestCase {
  func testFilesAreReadEachTime() async throws {
    try await withTemporaryFolder { folder in
      let (resolverPath, hostsPath) = (folder + "/resolv.conf", folder + "/hosts")
      let configuration = DNSResolver.Configuration(hostsFile: hostsPath)
      let missing = ResolverFiles(configuration, resolverPath: resolverPath)
      XCTAssertEqual(missing.nameServers.servers.map(\.description), ["127.0.0.1:53"])
      XCTAssertFalse(missing.hostname.isEmpty)
      try "nameserver 192.0.2.53\nsearch a.test\noptions ndots:5\n".write(
        toFile: resolverPath,
        atomically: true,
        encoding: .utf8
      )
      try "192.0.2.1 api\n".write(toFile: hostsPath, atomically: true, encoding: .utf8)
      let files = ResolverFiles(configuration, resolverPath: resolverPath)
      XCTAssertEqual(files.nameServers.servers.map(\.description), ["192.0.2.53:53"])
      XCTAssertEqual(files.nameServers.searchDomains, ["a.test"])
      XCTAssertEqual(files.nameServers.dots, 5)
      XCTAssertEqual(files.hosts.addresses(of: "api").map(\.description), ["192.0.2.1"])

      let given = ResolverConfiguration(servers: [])
      let explicit = DNSResolver.Configuration(nameServers: given, hostsFile: nil)
      let none = ResolverFiles(explicit, resolverPath: resolverPath)
      XCTAssertEqual(none.nameServers, given)
      XCTAssertEqual(none.hosts.addresses(of: "api"), [])
    }
  }

  func testSocketAddresses() throws {
    let ipv4 = try SocketAddress(try XCTUnwrap(EndpointAddress("192.0.2.1:53")))
    XCTAssertEqual(ipv4.ipAddress, "192.0.2.1")
    XCTAssertEqual(ipv4.port, 53)
    let ipv6 = try SocketAddress(try XCTUnwrap(EndpointAddress("[2001:db8::1]:53")))
    XCTAssertEqual(ipv6.ipAddress, "2001:db8::1")
    for zone in ["lo", "1"] {
      let address = try XCTUnwrap(IPAddress("fe80::1%\(zone)"))
      let interface = try SocketAddress(.ip(address, port: 53)).withSockAddr { socketAddress, _ in
        // `sin6_scope_id`
        UnsafeRawPointer(socketAddress).loadUnaligned(fromByteOffset: 24, as: UInt32.self)
      }
      XCTAssertEqual(interface, 1, zone)
    }
    let address = try XCTUnwrap(IPAddress("fe80::1%no-such"))
    XCTAssertThrowsError(try SocketAddress(.ip(address, port: 53)))
    XCTAssertThrowsError(try SocketAddress(.ip(address, port: 65_536)))
    XCTAssertEqual(try SocketAddress(.unix(path: "/run/a")).pathname, "/run/a")
  }
}
