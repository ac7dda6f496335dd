internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import XCTest

@testable internal import ConnectHTTP3

/// The client's connections over HTTP/3: what becomes of them and of their streams.
final class HTTP3ClientTests: XCTestCase {
  /// A client and one of its endpoints.
  private struct Client {
    let client: NIOHTTPClient
    let endpoint: any HTTPEndpoint

    init(port: Int, _ configuration: NIOHTTPClient.Configuration) throws {
      self.client = NIOHTTPClient(configuration: configuration)
      let origin = Origin(scheme: .https, host: "localhost", port: port)
      self.endpoint = try self.client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    }

    func get(_ target: String, headers: Headers = [:]) async -> StreamRecord {
      await StreamRecord.run(
        HTTPStreamRequest(method: .get, target: target, headers: headers, body: .complete(ByteBuffer())),
        on: self.endpoint
      )
    }

    func shutdown() async { await self.client.shutdown(within: .seconds(5)) }
  }

  private func withClient(
    _ change: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (Client, PythonHTTP3Server) async throws -> Void
  ) async throws {
    let server = try await PythonHTTP3Server.shared()
    var configuration = server.configuration()
    change(&configuration)
    let client = try Client(port: server.port(.aioquic), configuration)
    try await body(client, server)
    await client.shutdown()
  }

  // MARK: Authority

  /// The server's certificate is for localhost. A session that goes on with an earlier one has its names, too.
  func testAuthorityOfACall() async throws {
    try await self.withClient({ $0.http3 = .alone(.init(usesEarlyData: true)) }) { client, _ in
      for round in 1...2 {
        for (authority, isNamed) in [("localhost:8443", true), ("other.example", false)] {
          var request = HTTPStreamRequest(
            method: .get,
            target: "/script/size/1",
            headers: [:],
            body: .complete(ByteBuffer())
          )
          request.hasNoSideEffects = true
          request.authority = authority
          let record = await StreamRecord.run(request, on: client.endpoint)
          if isNamed {
            XCTAssertEqual(record.head?.status, 200, "\(round): \(String(describing: record.failure))")
          } else {
            XCTAssertEqual(record.failure?.error.code, .unavailable)
            let message = record.failure?.error.message ?? ""
            XCTAssertTrue(message.contains("its authority is 'other.example'"), "\(round): \(message)")
          }
        }
        _ = await client.get("/script/close/0x100")
      }
    }
  }

  // MARK: Early data

  /// Ends the connection and makes a request on the next one.
  private func getOnNext(_ client: Client, _ target: String, hasNoSideEffects: Bool) async throws
    -> StreamRecord
  {
    _ = await client.get("/script/end")
    try await client.client.waitUntilIdle()
    var request = HTTPStreamRequest(method: .get, target: target, headers: [:], body: .complete(ByteBuffer()))
    request.hasNoSideEffects = hasNoSideEffects
    return await StreamRecord.run(request, on: client.endpoint)
  }

  func testEarlyData() async throws {
    try await self.withClient({ $0.http3 = .alone(.init(usesEarlyData: true)) }) { client, _ in
      let first = try await self.getOnNext(client, "/script/early", hasNoSideEffects: true)
      for _ in 1...3 {
        let safe = try await self.getOnNext(client, "/script/early", hasNoSideEffects: true)
        XCTAssertEqual(safe.text, "yes", "\(String(describing: safe.failure))")
        XCTAssertEqual(safe.info?.isEarlyData, true)
        let unsafe = try await self.getOnNext(client, "/script/early", hasNoSideEffects: false)
        XCTAssertEqual(unsafe.text, "no", "\(String(describing: unsafe.failure))")
        XCTAssertEqual(unsafe.info?.isEarlyData, false)
      }
      XCTAssertNotNil(first.text)
      let refused = try await self.getOnNext(client, "/script/too-early", hasNoSideEffects: true)
      XCTAssertEqual(refused.failure?.isUnprocessed, true)
      XCTAssertEqual(refused.failure?.error.httpStatus, 425)
    }
  }

  func testNoEarlyDataUnlessAsked() async throws {
    try await self.withClient { client, _ in
      for _ in 1...2 {
        let record = try await self.getOnNext(client, "/script/early", hasNoSideEffects: true)
        XCTAssertEqual(record.text, "no", "\(String(describing: record.failure))")
      }
    }
  }

  func testConnectionInfo() async throws {
    try await self.withClient { client, server in
      let first = await client.get("/script/size/5")
      XCTAssertEqual(first.text, "xxxxx", "\(String(describing: first.failure))")
      XCTAssertEqual(first.info?.version, .http3)
      XCTAssertEqual(first.info?.isReused, false)
      XCTAssertEqual(first.info?.remoteAddress, "127.0.0.1:\(server.port(.aioquic))")
      XCTAssertNotNil(first.info?.setup?.tls)
      let second = await client.get("/script/size/5")
      XCTAssertEqual(second.info?.isReused, true)
    }
  }

  func testLargeBody() async throws {
    try await self.withClient { client, _ in
      let record = await client.get("/script/size/5000000")
      XCTAssertEqual(record.byteCount, 5_000_000, "\(String(describing: record.failure))")
    }
  }

  /// Where the system does not put datagrams together, one read takes several.
  func testReadsOfSeveralDatagrams() async throws {
    let isUsed = ReceiveOffload.isUsed
    ReceiveOffload.set(false)
    defer { ReceiveOffload.set(isUsed) }
    let address = try SocketAddress(ipAddress: "127.0.0.1", port: 9)
    let channel = try await UDPSocket.bootstrap(
      on: MultiThreadedEventLoopGroup.singleton.next(),
      for: address
    )
    .connect(to: address).get()
    let count = try await channel.getOption(.datagramVectorReadMessageCount).get()
    XCTAssertEqual(count, UDPSocket.vectorSize)
    try await channel.close()
    try await self.withClient { client, _ in
      let record = await client.get("/script/size/5000000")
      XCTAssertEqual(record.byteCount, 5_000_000, "\(String(describing: record.failure))")
    }
  }

  func testLargeRequest() async throws {
    try await self.withClient { client, _ in
      let body = ByteBuffer(repeating: 7, count: 5_000_000)
      let record = await StreamRecord.run(
        HTTPStreamRequest(method: .post, target: "/script/count", headers: [:], body: .complete(body)),
        on: client.endpoint
      )
      XCTAssertEqual(record.text, "5000000", "\(String(describing: record.failure))")
    }
  }

  func testResets() async throws {
    try await self.withClient { client, _ in
      for (code, expected, isUnprocessed) in [
        ("0x10b", Connect.Code.unavailable, true), ("0x107", .resourceExhausted, false),
        ("0x102", .internalError, false), ("0x10c", .canceled, false),
      ] {
        let record = await client.get("/script/reset/\(code)")
        XCTAssertEqual(record.failure?.error.code, expected, code)
        XCTAssertEqual(record.failure?.isUnprocessed, isUnprocessed, code)
        XCTAssertTrue(record.failure?.error.message?.hasPrefix("the server reset the stream: H3_") == true)
      }
      let next = await client.get("/script/size/1")
      XCTAssertEqual(next.info?.isReused, true)
    }
  }

  func testClosedConnectionIsReplaced() async throws {
    try await self.withClient { client, server in
      let record = await client.get("/script/close/0x102")
      XCTAssertEqual(record.failure?.error.code, .internalError)
      XCTAssertEqual(
        record.failure?.error.message,
        "https://localhost:\(server.port(.aioquic)) ended the HTTP/3 connection: H3_INTERNAL_ERROR: as asked"
      )
      let next = await client.get("/script/size/1")
      XCTAssertEqual(next.text, "x")
      XCTAssertEqual(next.info?.isReused, false)
    }
  }

  func testGoAwayMovesCallsToAnotherConnection() async throws {
    try await self.withClient { client, _ in
      _ = await client.get("/script/size/1")
      let last = await client.get("/script/goaway")
      XCTAssertEqual(last.text, "last", "\(String(describing: last.failure))")
      let next = await client.get("/script/size/1")
      XCTAssertEqual(next.text, "x", "\(String(describing: next.failure))")
      XCTAssertEqual(next.info?.isReused, false)
    }
  }

  func testHeaderLimit() async throws {
    try await self.withClient { client, _ in
      let record = await client.get("/script/headers/70000")
      XCTAssertEqual(record.failure?.error.code, .resourceExhausted)
      let next = await client.get("/script/headers/50000")
      XCTAssertNil(next.failure)
      XCTAssertEqual(next.info?.isReused, true)
    }
  }

  func testNobodyThere() async throws {
    // A UDP port that was free a moment ago.
    let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try XCTUnwrap(channel.localAddress?.port)
    try await channel.close()
    let server = try await PythonHTTP3Server.shared()
    let client = NIOHTTPClient(configuration: server.configuration())
    let endpoint = try client.endpoint(
      for: Origin(scheme: .https, host: "127.0.0.1", port: port),
      on: nil,
      requiresHTTP2: false
    )
    let start = ContinuousClock.now
    let record = await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: "/", headers: [:], body: .complete(ByteBuffer())),
      on: endpoint
    )
    XCTAssertEqual(record.failure?.error.code, .unavailable)
    XCTAssertEqual(
      record.failure?.error.message,
      "cannot connect to https://127.0.0.1:\(port) over HTTP/3 (127.0.0.1:\(port): Connection refused)"
    )
    // Not after the 20 seconds for an attempt.
    XCTAssertLessThan(ContinuousClock.now - start, .seconds(10))
    await client.shutdown(within: .zero)
  }

  func testNetworkThatDropsEverything() async throws {
    // A socket that reads nothing.
    let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try XCTUnwrap(channel.localAddress?.port)
    try await self.withClient({ $0.timeouts.connect = .milliseconds(300) }) { client, server in
      var configuration = server.configuration()
      configuration.timeouts.connect = .milliseconds(300)
      let other = try Client(port: port, configuration)
      let record = await other.get("/")
      XCTAssertEqual(record.failure?.error.code, .unavailable)
      let message = record.failure?.error.message ?? ""
      XCTAssertTrue(
        message.contains("the QUIC handshake with https://localhost:\(port) timed out after"),
        message
      )
      await other.shutdown()
    }
    try await channel.close()
  }

  func testWrongNameAndUntrustedServer() async throws {
    let others = try await TestCertificates.make()
    try await self.withClient({ $0.tls.serverName = "other.example" }) { client, _ in
      let record = await client.get("/")
      let message = record.failure?.error.message ?? ""
      XCTAssertTrue(message.contains("TLS: hostname mismatch: "), message)
      XCTAssertTrue(message.contains("is not for 'other.example', but for localhost"), message)
    }
    try await self.withClient({ $0.tls.trustRoots = .pemBytes(Array(others.authorityPEM.utf8)) }) {
      client,
      _ in
      let record = await client.get("/")
      XCTAssertEqual(record.failure?.error.code, .unavailable)
      let message = record.failure?.error.message ?? ""
      XCTAssertTrue(message.contains("was not accepted: "), message)
    }
    try await self.withClient({ $0.tls.trustRoots = .systemDefault }) { client, _ in
      let record = await client.get("/")
      let message = record.failure?.error.message ?? ""
      XCTAssertTrue(message.contains("unknown CA"), message)
    }
    try await self.withClient({ $0.tls.certificateVerification = .none }) { client, _ in
      let record = await client.get("/script/size/1")
      XCTAssertEqual(record.text, "x")
    }
  }

  func testTrustRootsOfAFile() async throws {
    let path = "/tmp/connect-h3-\(ProcessInfo.processInfo.processIdentifier).pem"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let server = try await PythonHTTP3Server.shared()
    try Data("nothing".utf8).write(to: URL(filePath: path))
    try await self.withClient({
      $0.tls.trustRoots = .pemFile(path)
      $0.tls.fileCheckInterval = .zero
    }) { client, _ in
      let bad = await client.get("/script/size/1")
      XCTAssertEqual(bad.failure?.error.code, .failedPrecondition)
      XCTAssertTrue(
        bad.failure?.error.message?.contains("there is no certificate in PEM in the file \(path)") == true
      )
      // The file is looked at again.
      try Data(server.authority).write(to: URL(filePath: path))
      // Between attempts to connect, calls fail at once.
      var good = bad
      let end = ContinuousClock.now + .seconds(20)
      while good.failure != nil, ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(20))
        good = await client.get("/script/size/1")
      }
      XCTAssertEqual(good.text, "x", "\(String(describing: good.failure))")
    }
  }

  func testAddressIsCheckedAgainstTheCertificate() async throws {
    let server = try await PythonHTTP3Server.shared()
    let client = NIOHTTPClient(configuration: server.configuration())
    let endpoint = try client.endpoint(
      for: Origin(scheme: .https, host: "127.0.0.1", port: server.port(.aioquic)),
      on: nil,
      requiresHTTP2: false
    )
    let record = await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: "/script/size/1", headers: [:], body: .complete(ByteBuffer())),
      on: endpoint
    )
    XCTAssertEqual(record.text, "x", "\(String(describing: record.failure))")
    await client.shutdown(within: .zero)
  }

  func testCancellationReachesTheServer() async throws {
    try await self.withClient { client, _ in
      let name = "case-\(UInt32.random(in: 0 ... .max))"
      await StreamRecord.cancel(
        HTTPStreamRequest(
          method: .get,
          target: "/script/size/100000000",
          headers: ["x-case": [name]],
          body: .complete(ByteBuffer())
        ),
        on: client.endpoint
      )
      let answer = await client.get("/given-up?\(name)")
      XCTAssertEqual(answer.text, "yes", "\(String(describing: answer.failure))")
      XCTAssertEqual(answer.info?.isReused, true)
    }
  }

  /// The system of a server that has crashed says that nobody has the port, so that no call has to wait for a timeout.
  func testServerThatCrashesIsGivenUp() async throws {
    let server = try await PythonHTTP3Server()
    var configuration = server.configuration()
    configuration.timeouts.unacknowledged = nil
    let client = try Client(port: server.port(.aioquic), configuration)
    _ = await client.get("/script/size/1")
    server.kill()
    let record = await client.get("/script/size/1")
    XCTAssertEqual(record.failure?.error.code, .unavailable)
    await client.shutdown()
  }

  /// Its deadline is cancelled, which would hold the attempt and all that belongs to it.
  func testHandshakeThatIsGivenUpLeavesNothing() async throws {
    let silent = try await SilentPort()
    weak var remains: LogRecord?
    do {
      let log = LogRecord()
      remains = log
      var configuration = NIOHTTPClient.Configuration(http3: .alone)
      configuration.timeouts.connect = .seconds(600)
      let client = NIOHTTPClient(configuration: configuration, logger: log.logger)
      let origin = Origin(scheme: .https, host: "127.0.0.1", port: silent.port)
      let endpoint = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
      async let record = StreamRecord.run(
        HTTPStreamRequest(method: .get, target: "/", headers: [:], body: .complete(ByteBuffer())),
        on: endpoint
      )
      try await self.eventually { silent.tries == 1 }
      await client.shutdown(within: .zero)
      let failure = await record.failure
      XCTAssertNotNil(failure)
    }
    try await self.eventually { remains == nil }
    XCTAssertNil(remains)
    try await silent.close()
  }

  private func eventually(_ condition: () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(10)
    while !condition(), ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(2)) }
  }

  func testOriginsWithoutTLSAreServedAsBefore() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/test") { _, responder in try await responder.respond(body: ByteBuffer(string: "plain")) }
    let client = NIOHTTPClient(configuration: .init(http3: .alone))
    let endpoint = try client.endpoint(
      for: Origin(scheme: .http, host: "127.0.0.1", port: server.port),
      on: nil,
      requiresHTTP2: false
    )
    let record = await StreamRecord.run(
      HTTPStreamRequest(method: .get, target: "/test", headers: [:], body: .complete(ByteBuffer())),
      on: endpoint
    )
    XCTAssertEqual(record.text, "plain")
    XCTAssertEqual(record.info?.version, .http1)
    await client.shutdown(within: .seconds(5))
    await server.stop()
  }
}
