internal import Connect
internal import ConnectChannels
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// HTTP/3 beside TCP, against servers over sockets: how it is found, and what happens where it does not work.
final class HTTP3DiscoveryTests: XCTestCase {
  private func withServer(
    versions: LoopbackServer.Configuration.Versions = .all,
    _ body: (TwoWayServer, PythonHTTP3Server) async throws -> Void
  ) async throws {
    let quic = try await PythonHTTP3Server.shared()
    let server = try await TwoWayServer(versions: versions, trusting: quic.authority)
    try await body(server, quic)
    await server.stop()
  }

  // MARK: - Servers that have both

  /// hypercorn serves both on the same port number, and says so.
  func testHypercorn() async throws {
    let server = try await PythonHTTP3Server.shared()
    let port = server.port(.hypercorn)
    let httpClient = NIOHTTPClient(configuration: server.configuration(.discovered))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(host: "https://localhost:\(port)", timeout: .seconds(60))
    )
    var versions: [String] = []
    let end = ContinuousClock.now + .seconds(20)
    while versions.last != "3", ContinuousClock.now < end {
      let number = Int32(versions.count)
      let response = await client.unary(TestMethods.echo, .with { $0.payload.small = number })
      XCTAssertEqual(response.message?.payload.small, number, "\(String(describing: response.error))")
      versions.append(response.message?.seen.httpVersion ?? "")
    }
    XCTAssertEqual(versions.first, "2")
    XCTAssertEqual(versions.last, "3")
    await httpClient.shutdown(within: .seconds(5))
  }

  /// Caddy does the same, with a QUIC of its own.
  func testCaddy() async throws {
    let caddy = try await CaddyServer.start()
    for requiresHTTP2 in [false, true] {
      let client = try TwoWayClient(caddy.configuration, port: caddy.port, requiresHTTP2: requiresHTTP2)
      let first = await client.get("/")
      XCTAssertEqual(first.text, "HTTP/2.0", "\(String(describing: first.failure)) \(caddy.errorOutput)")
      let last = try await client.get("/", until: .http3)
      XCTAssertEqual(last.text, "HTTP/3.0")
      // From now on, no call goes over TCP.
      for _ in 0..<20 {
        let record = await client.get("/")
        XCTAssertEqual(record.info?.version, .http3)
      }
      await client.shutdown()
    }
  }

  /// Calls on all of them while they change from TCP to QUIC: none fails.
  func testNoCallFailsDuringTheUpgrade() async throws {
    let caddy = try await CaddyServer.start()
    for version in [NIOHTTPClient.Configuration.HTTPVersion.automatic, .http1Only] {
      var configuration = caddy.configuration
      configuration.version = version
      let client = try TwoWayClient(configuration, port: caddy.port)
      let texts = await withTaskGroup(of: [String].self) { group in
        for _ in 0..<40 {
          group.addTask {
            var texts: [String] = []
            for _ in 0..<50 {
              let record = await client.get("/")
              XCTAssertNil(record.failure)
              texts.append(record.text)
            }
            return texts
          }
        }
        return await group.reduce(into: []) { $0 += $1 }
      }
      XCTAssertEqual(texts.count, 2_000)
      XCTAssertEqual(Set(texts), [version == .http1Only ? "HTTP/1.1" : "HTTP/2.0", "HTTP/3.0"])
      await client.shutdown()
    }
  }

  /// Each server of a fleet changes to HTTP/3 by itself.
  func testFleet() async throws {
    let hosts = (1...4).map { "127.0.0.\($0)" }
    let caddy = try await CaddyServer.start(at: hosts)
    var configuration = caddy.configuration
    configuration.tls.serverName = "localhost"
    configuration.channel.balancing = .roundRobin
    configuration.channel.resolver = StaticResolver(
      hosts.compactMap { Endpoint("\($0):\(caddy.port)") }
    )
    let client = try TwoWayClient(configuration, port: caddy.port)
    var servers: [String: Set<HTTPConnectionInfo.Version>] = [:]
    let end = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < end {
      let record = await client.get("/")
      let info = try XCTUnwrap(record.info, "\(String(describing: record.failure))")
      servers[info.remoteAddress ?? "", default: []].insert(info.version)
      if servers.count == 4, servers.values.allSatisfy({ $0.contains(.http3) }) { break }
    }
    XCTAssertEqual(servers.count, 4)
    XCTAssertTrue(servers.values.allSatisfy { $0.contains(.http3) }, "\(servers)")
    await client.shutdown()
  }

  func testCallsUnderWayStayOnTCP() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      let (gate, open) = AsyncStream<Void>.makeStream()
      server.tcp.onRaw("/slow") { _, responder in
        try await responder.sendHead()
        for await _ in gate {}
        try await responder.sendBody("slow")
        try await responder.finish()
      }
      let client = try server.client()
      async let slow = client.get("/slow")
      _ = await client.get()
      let last = try await client.get("/script/size/1", until: .http3)
      XCTAssertEqual(last.text, "x")
      open.finish()
      let record = await slow
      XCTAssertEqual(record.text, "slow", "\(String(describing: record.failure))")
      XCTAssertEqual(record.info?.version, .http2)
      await client.shutdown()
    }
  }

  func testConnectionsOfHTTP1AreReplaced() async throws {
    try await self.withServer(versions: .http1Only) { server, quic in
      server.announce(port: quic.port(.aioquic))
      let client = try server.client()
      let first = await client.get()
      XCTAssertEqual(first.info?.version, .http1)
      _ = try await client.get("/script/size/1", until: .http3)
      await withTaskGroup(of: StreamRecord.self) { group in
        for _ in 0..<50 { group.addTask { await client.get("/script/size/10") } }
        for await record in group {
          XCTAssertEqual(record.text, "xxxxxxxxxx", "\(String(describing: record.failure))")
          XCTAssertEqual(record.info?.version, .http3)
        }
      }
      await client.shutdown()
    }
  }

  /// The next connection begins with QUIC: no byte goes over TCP.
  func testNextConnectionBeginsWithQUIC() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      let client = try server.client()
      _ = try await client.get("/script/size/1", until: .http3)
      await server.stop()
      let last = await client.get("/script/goaway")
      XCTAssertEqual(last.info?.version, .http3)
      let next = await client.get("/script/size/1")
      XCTAssertEqual(next.info?.version, .http3, "\(String(describing: next.failure))")
      XCTAssertEqual(next.info?.isReused, false)
      await client.shutdown()
    }
  }

  /// DNS says where HTTP/3 is, no response does.
  func testHTTPSRecord() async throws {
    try await self.withServer { server, quic in
      let port = UInt16(quic.port(.aioquic))
      let target: [UInt8] = [3] + "api".utf8 + [4] + "test".utf8 + [0]
      let names = try await TinyNameServer(
        name: "_\(server.tcp.port)._https.api.test",
        record: [0, 1] + target + [0, 1, 0, 3, 2] + "h3".utf8 + [
          0, 3, 0, 2, UInt8(port >> 8), UInt8(port & 255),
        ]
      )
      var configuration = server.configuration
      configuration.tls.serverName = "localhost"
      let nameServers = ResolverConfiguration(servers: [names.address])
      configuration.channel.resolver = DNSResolver(.init(nameServers: nameServers, hostsFile: nil))
      let client = try TwoWayClient(configuration, host: "api.test", port: server.tcp.port)
      let record = try await client.get("/script/size/1", until: .http3)
      XCTAssertEqual(record.info?.version, .http3, "\(String(describing: record.failure))")
      XCTAssertEqual(record.info?.remoteAddress, "127.0.0.1:\(port)")
      await client.shutdown()
      try await names.stop()
    }
  }

  func testSeveralEventLoops() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      var configuration = server.configuration
      configuration.eventLoops = 2
      let client = NIOHTTPClient(configuration: configuration)
      let origin = Origin(scheme: .https, host: "localhost", port: server.tcp.port)
      for executor in client.executors {
        let endpoint = try client.endpoint(for: origin, on: executor, requiresHTTP2: false)
        var version: HTTPConnectionInfo.Version?
        let end = ContinuousClock.now + .seconds(20)
        while version != .http3, ContinuousClock.now < end {
          let record = await StreamRecord.run(
            HTTPStreamRequest(
              method: .get,
              target: TwoWayServer.path,
              headers: [:],
              body: .complete(ByteBuffer())
            ),
            on: endpoint
          )
          XCTAssertNil(record.failure)
          version = record.info?.version
        }
        XCTAssertEqual(version, .http3)
      }
      await client.shutdown(within: .seconds(5))
    }
  }

  func testShutdownDuringTheUpgrade() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      for _ in 0..<20 {
        let client = try server.client()
        let record = await client.get()
        XCTAssertEqual(record.text, "tcp")
        await client.client.shutdown(within: .zero)
      }
    }
  }

  // MARK: - Where HTTP/3 does not work

  func testNetworkThatDropsUDP() async throws {
    try await self.withServer { server, _ in
      let silent = try await SilentPort()
      server.announce(port: silent.port)
      let log = LogRecord()
      let client = try server.client({ $0.timeouts.connect = .milliseconds(400) }, logger: log.logger)
      let first = await client.get()
      XCTAssertEqual(first.text, "tcp", "\(String(describing: first.failure))")
      func staysWithTCP() async {
        let record = await client.get()
        XCTAssertEqual(record.info?.version, .http2)
        XCTAssertEqual(record.info?.isReused, true)
      }
      // While QUIC is tried, and once it has failed.
      try await log.wait(for: "HTTP/3 does not work where TCP does") { await staysWithTCP() }
      XCTAssertEqual(silent.tries, 1)
      for _ in 0..<5 { await staysWithTCP() }
      await client.shutdown()
      try await silent.close()
    }
  }

  /// TCP begins 250 ms later, as without early data, and takes the calls that nobody has answered.
  func testEarlyDataWhereUDPIsDropped() async throws {
    try await self.withServer { server, quic in
      let proxy = try await UDPProxy(to: quic.port(.aioquic))
      server.announce(port: proxy.port)
      let client = try server.client { $0.http3 = .discovered(.init(usesEarlyData: true)) }
      _ = try await client.get("/script/size/1", until: .http3)
      _ = await client.get("/script/close/0x100")
      try await proxy.set { $0.isBlack = true }
      let early = await client.get()
      XCTAssertEqual(early.failure?.isUnprocessed, true)
      // TCP is there before QUIC times out.
      let reason = early.failure?.error.message
      XCTAssertEqual(reason?.contains("another connection or address"), true, "\(reason ?? "")")
      let next = await client.get()
      XCTAssertEqual(next.text, "tcp", "\(String(describing: next.failure))")
      await client.shutdown()
      try await proxy.stop()
    }
  }

  /// A new connection is not held up by what is known to be broken.
  func testBrokenHTTP3CostsNothing() async throws {
    try await self.withServer { server, _ in
      let silent = try await SilentPort()
      server.announce(port: silent.port)
      let log = LogRecord()
      let client = try server.client({ $0.timeouts.connect = .milliseconds(300) }, logger: log.logger)
      _ = await client.get()
      try await log.wait(for: "HTTP/3 does not work where TCP does")
      XCTAssertEqual(silent.tries, 1)
      await server.tcp.closeConnections()
      try await client.connectionsDidClose()
      let record = await client.get()
      XCTAssertEqual(record.info?.version, .http2, "\(String(describing: record.failure))")
      XCTAssertEqual(record.info?.isReused, false)
      // QUIC was not tried again, so that TCP did not wait for it.
      XCTAssertEqual(silent.tries, 1)
      await client.shutdown()
      try await silent.close()
    }
  }

  func testTCPWaitsForQUICWhereItIsKnown() async throws {
    try await self.withServer { server, _ in
      let silent = try await SilentPort()
      server.announce(port: silent.port)
      let client = try server.client()
      _ = await client.get()
      // The try beside the connection ends with it, so that nothing is known of the port.
      await server.tcp.closeConnections()
      try await client.connectionsDidClose()
      let start = ContinuousClock.now
      let record = await client.get()
      XCTAssertEqual(record.text, "tcp", "\(String(describing: record.failure))")
      XCTAssertEqual(record.info?.isReused, false)
      XCTAssertGreaterThanOrEqual(ContinuousClock.now - start, .milliseconds(240))
      await client.shutdown()
      try await silent.close()
    }
  }

  func testNobodyAtTheUDPPort() async throws {
    try await self.withServer { server, _ in
      let closed = try await SilentPort()
      try await closed.close()
      server.announce(port: closed.port)
      let client = try server.client()
      for _ in 0..<20 {
        let record = await client.get()
        XCTAssertEqual(record.text, "tcp", "\(String(describing: record.failure))")
      }
      await server.tcp.closeConnections()
      try await client.connectionsDidClose()
      let record = await client.get()
      XCTAssertEqual(record.text, "tcp", "\(String(describing: record.failure))")
      await client.shutdown()
    }
  }

  /// An alternative has to show a certificate for the origin (RFC 7838, section 2.1).
  func testWrongCertificate() async throws {
    let quic = try await PythonHTTP3Server.shared()
    // Trusts only its own authority.
    let server = try await TwoWayServer()
    server.announce(port: quic.port(.aioquic))
    let log = LogRecord()
    let client = try server.client(logger: log.logger)
    func staysWithTCP() async {
      let record = await client.get()
      XCTAssertEqual(record.text, "tcp", "\(String(describing: record.failure))")
    }
    await staysWithTCP()
    // While QUIC is tried, and once it has failed.
    try await log.wait(for: "could not connect over HTTP/3") { await staysWithTCP() }
    for _ in 0..<5 { await staysWithTCP() }
    await client.shutdown()
    await server.stop()
  }

  func testFieldsThatNameNoHTTP3() async throws {
    try await self.withServer { server, quic in
      let port = quic.port(.aioquic)
      let client = try server.client()
      for field in [
        "h3=\"other.example:\(port)\"", "h2=\":\(port)\"", "h3=\":0\"", "nonsense", "clear",
        "h3=\":\(port)\"; ma=0",
      ] {
        server.announce(field)
        for _ in 0..<3 {
          let record = await client.get()
          XCTAssertEqual(record.info?.version, .http2, field)
        }
      }
      server.announce(port: port)
      let record = try await client.get(until: .http3)
      XCTAssertEqual(record.info?.version, .http3)
      // None was tried over QUIC before.
      let endpoints = await client.client.snapshots().flatMap(\.endpoints)
      XCTAssertEqual(endpoints.reduce(0) { $0 + $1.openedConnections }, 2)
      await client.shutdown()
    }
  }

  /// Calls that follow go over TCP.
  func testServerThatFallsSilentInUse() async throws {
    let quic = try await PythonHTTP3Server()
    let server = try await TwoWayServer(trusting: quic.authority)
    server.announce(port: quic.port(.aioquic))
    let client = try server.client { $0.timeouts.unacknowledged = .milliseconds(400) }
    _ = try await client.get("/script/size/1", until: .http3)
    quic.stopAnswering()
    let failed = await client.get()
    XCTAssertEqual(failed.failure?.error.code, .unavailable)
    let next = await client.get()
    XCTAssertEqual(next.text, "tcp", "\(String(describing: next.failure))")
    XCTAssertEqual(next.info?.version, .http2)
    await client.shutdown()
    quic.kill()
    await server.stop()
  }

  /// A server that does not serve the origin over HTTP/3 (421): its calls were not processed.
  func testMisdirectedRequest() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      server.tcp.onRaw("/script/status/421") { _, responder in try await responder.respond(text: "tcp") }
      let client = try server.client()
      _ = try await client.get("/script/size/1", until: .http3)
      let misdirected = await client.get("/script/status/421")
      XCTAssertEqual(misdirected.failure?.isUnprocessed, true)
      XCTAssertEqual(misdirected.failure?.error.code, .unavailable)
      let next = await client.get("/script/status/421")
      XCTAssertEqual(next.text, "tcp", "\(String(describing: next.failure))")
      await client.shutdown()
    }
  }

  /// A server that completes handshakes, and ends each connection at its first call: later calls go over TCP.
  func testServerThatEndsConnectionsAtTheFirstCall() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      let client = try server.client()
      _ = await client.get()
      try await client.connectionsDidOpen(2)
      let failed = await client.get("/script/close/0x102")
      XCTAssertEqual(failed.failure?.error.code, .internalError, failed.text)
      for _ in 0..<3 {
        let next = await client.get()
        XCTAssertEqual(next.text, "tcp", "\(String(describing: next.failure))")
      }
      await client.shutdown()
    }
  }

  /// HTTP/3 does not go through proxies; TCP does.
  func testProxy() async throws {
    try await self.withServer { server, _ in
      let nobody = try await SilentPort()
      let proxy = try Proxy("http://127.0.0.1:\(nobody.port)")
      let client = try server.client { $0.proxy = .proxy(proxy) }
      let record = await client.get()
      XCTAssertEqual(record.failure?.error.code, .unavailable)
      XCTAssertEqual(record.failure?.error.message?.contains("the proxy"), true)
      await client.shutdown()
      try await nobody.close()
    }
  }

  func testServerOverQUICThatCrashes() async throws {
    let quic = try await PythonHTTP3Server()
    let server = try await TwoWayServer(trusting: quic.authority)
    server.announce(port: quic.port(.aioquic))
    let client = try server.client()
    _ = try await client.get("/script/size/1", until: .http3)
    quic.kill()
    let failed = await client.get()
    XCTAssertEqual(failed.failure?.error.code, .unavailable)
    let next = await client.get()
    XCTAssertEqual(next.text, "tcp", "\(String(describing: next.failure))")
    await client.shutdown()
    await server.stop()
  }

  func testClientsWithoutHTTP3IgnoreTheField() async throws {
    try await self.withServer { server, quic in
      server.announce(port: quic.port(.aioquic))
      let client = try server.client { $0.http3 = nil }
      for _ in 0..<5 {
        let record = await client.get()
        XCTAssertEqual(record.info?.version, .http2)
      }
      await client.shutdown()
    }
  }
}
