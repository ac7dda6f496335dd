import Connect
import ConnectNIO
import ConnectTesting
import XCTest

@testable import ConnectChannels

final class TargetResolverTests: XCTestCase {
  private let executor = VirtualExecutor()

  private func addresses(_ text: String) async throws -> [String] {
    let resolver = try Target(text).resolver
    let origin = Origin(scheme: .https, host: "name.in.certificate", port: 443)
    return try await TestWatch(resolver, origin, on: self.executor).update().addresses
  }

  /// Calls wait for the first answer only where it may have a service config.
  func testWhichResolversMayBringAServiceConfig() throws {
    for text in [
      "https://a.test", "dns:a.test", "srv:_grpc._tcp.a.test", "ipv4:192.0.2.1:80", "unix:/run/a.sock",
    ] {
      XCTAssertFalse(try Target(text).resolver.mayBringServiceConfig, text)
    }
    XCTAssertFalse(SystemResolver().mayBringServiceConfig)
    XCTAssertFalse(DNSResolver().mayBringServiceConfig)
    let configuration = DNSResolver.Configuration(readsServiceConfig: true)
    XCTAssertTrue(DNSResolver(configuration).mayBringServiceConfig)
    XCTAssertTrue(DNSResolver.service("_grpc._tcp.a.test", configuration).mayBringServiceConfig)
  }

  func testTargets() async throws {
    let cases = [
      ("https://192.0.2.1:81", ["192.0.2.1:81"]),
      ("http://[::1]", ["[::1]:80"]),
      ("dns:192.0.2.1", ["192.0.2.1:443"]),
      ("ipv4:192.0.2.1:80,192.0.2.2:81", ["192.0.2.1:80", "192.0.2.2:81"]),
      ("unix:/run/a.sock", ["unix:/run/a.sock"]),
      ("unix-abstract:a", ["unix-abstract:a"]),
      ("vsock:3:50051", ["vsock:3:50051"]),
    ]
    for (text, expected) in cases {
      let addresses = try await self.addresses(text)
      XCTAssertEqual(addresses, expected, text)
    }
  }

  func testTargetsOfControlPlanesSayWhatToUse() throws {
    let resolver = try Target("xds:///orders").resolver
    let origin = Origin(scheme: .http, host: "orders", port: 80)
    let error = Observed<ConnectError?>(nil)
    _ = resolver.watch(origin, on: self.executor) { answer in
      if case .failure(let failure) = answer { error.update { $0 = failure } }
    }
    XCTAssertEqual(error.value?.code, .failedPrecondition)
    XCTAssertTrue(error.value?.message?.contains("ConnectXDS") == true)
  }

  func testNames() async throws {
    let addresses = try await self.addresses("http://localhost:81")
    XCTAssertTrue(addresses.contains("127.0.0.1:81") || addresses.contains("[::1]:81"), "\(addresses)")
  }

  func testNameServer() async throws {
    let server = try await TestDNSServer.start(["api.test": [.a("10.0.0.1")]])
    let addresses = try await self.addresses("dns://127.0.0.1:\(server.port)/api.test:90")
    XCTAssertEqual(addresses, ["10.0.0.1:90"])
    await server.stop()
  }
}
