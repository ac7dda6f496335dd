internal import Connect
internal import ConnectChannels
internal import ConnectHTTP3
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import Synchronization
internal import XCTest

/// The program's own part in the verification of a server, on connections with early data.
final class HTTP3EarlyVerifierTests: XCTestCase {
  private struct NotAllowed: Error {}

  private struct Client: Sendable {
    let httpClient: NIOHTTPClient

    /// A client of the server on a port of 127.0.0.1, whatever the host of a request is.
    init(
      _ authority: TestCertificate,
      port: Int,
      _ verify: @escaping @Sendable (ServerVerifier.Server) async throws -> Void
    ) {
      var configuration = NIOHTTPClient.Configuration(
        tls: .init(
          trustRoots: .pemBytes(Array(authority.pem.utf8)),
          serverVerifier: ServerVerifier(verify),
          serverName: "localhost"
        ),
        http3: .alone(HTTP3Configuration(usesEarlyData: true))
      )
      configuration.channel.resolver = StaticResolver([Endpoint("127.0.0.1:\(port)")].compactMap { $0 })
      self.httpClient = NIOHTTPClient(configuration: configuration)
    }

    func get(_ target: String = "/", host: String = "localhost", authority: String? = nil) async throws
      -> StreamRecord
    {
      let endpoint = try self.httpClient.endpoint(
        for: Origin(scheme: .https, host: host, port: 443),
        on: nil,
        requiresHTTP2: false
      )
      var request = HTTPStreamRequest(
        method: .get,
        target: target,
        headers: [:],
        body: .complete(ByteBuffer())
      )
      request.hasNoSideEffects = true
      request.authority = authority
      let record = await StreamRecord.run(request, on: endpoint)
      // Protocol clients start such calls once more, too.
      return record.failure?.isUnprocessed == true ? await StreamRecord.run(request, on: endpoint) : record
    }

    /// Has a ticket afterwards, and no connection.
    func getTicket() async throws {
      for target in ["/", "/end"] {
        let record = try await self.get(target)
        XCTAssertNil(record.failure)
      }
      try await self.httpClient.waitUntilIdle()
    }

    func shutDown() async { await self.httpClient.shutdown(within: .seconds(5)) }
  }

  /// Two servers with certificates of one authority for the same names.
  private func withServers(_ body: (CertificateServers, TestCertificate) async throws -> Void) async throws {
    let root = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    var chains: [[TestCertificate]] = []
    for name in ["one", "two"] {
      chains.append([
        try await TestCertificate.make(name, names: "DNS:localhost,DNS:tenant.test", issuer: root)
      ])
    }
    try await CertificateServers.with(chains) { try await body($0, root) }
  }

  /// A session belongs to the host that the program has accepted the server for, though the certificate is the same.
  func testHostsShareNoSession() async throws {
    try await self.withServers { servers, root in
      let client = Client(root, port: servers.port(0, over: .quic)) { server in
        if server.host != "localhost" { throw NotAllowed() }
      }
      try await client.getTicket()
      let refused = try await client.get(host: "tenant.test")
      XCTAssertTrue(refused.failure?.error.exception is NotAllowed, "\(String(describing: refused.failure))")
      let accepted = try await client.get()
      XCTAssertNil(accepted.failure)
      XCTAssertEqual(accepted.info?.isEarlyData, true, "the ticket is still there")
      await client.shutDown()
    }
  }

  /// Another server has the address, and does not know the session: the program is asked about it, and may take as long as
  /// for any connection. Calls with another authority wait, too.
  func testServerThatDoesNotKnowTheSession() async throws {
    try await self.withServers { servers, root in
      let proxy = try await UDPProxy(to: servers.port(0, over: .quic))
      let asked = Mutex(0)
      let client = Client(root, port: proxy.port) { _ in
        let number = asked.withLock { asked in
          asked += 1
          return asked
        }
        // Longer than early data may wait for a server.
        if number > 1 { try await Task.sleep(for: .milliseconds(3500)) }
      }
      try await client.getTicket()
      try await proxy.replaceServer(port: servers.port(1, over: .quic))
      async let first = client.get()
      for _ in 0..<2000 where asked.withLock({ $0 }) < 2 { try await Task.sleep(for: .milliseconds(5)) }
      async let second = client.get(authority: "tenant.test")
      let records = [try await first, try await second]
      for record in records { XCTAssertNil(record.failure) }
      XCTAssertEqual(asked.withLock { $0 }, 2, "once for each server")
      await client.shutDown()
      try await proxy.stop()
    }
  }

  func testServerThatDoesNotKnowTheSessionIsRefused() async throws {
    try await self.withServers { servers, root in
      let proxy = try await UDPProxy(to: servers.port(0, over: .quic))
      let isRefused = Mutex(false)
      let client = Client(root, port: proxy.port) { _ in
        if isRefused.withLock({ $0 }) { throw NotAllowed() }
      }
      try await client.getTicket()
      try await proxy.replaceServer(port: servers.port(1, over: .quic))
      isRefused.withLock { $0 = true }
      let record = try await client.get()
      XCTAssertEqual(record.failure?.error.code, .unavailable)
      XCTAssertTrue(record.failure?.error.exception is NotAllowed, "\(String(describing: record.failure))")
      await client.shutDown()
      let other = Client(root, port: servers.port(1, over: .quic)) { _ in }
      let count = try await other.get("/count")
      XCTAssertEqual(count.text, "0", "requests that the server has processed")
      await other.shutDown()
      try await proxy.stop()
    }
  }
}
