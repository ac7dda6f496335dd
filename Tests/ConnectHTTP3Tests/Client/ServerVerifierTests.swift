internal import Connect
internal import ConnectHTTP3
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import Synchronization
internal import XCTest

/// The program's own part in the verification of a server, over TCP and QUIC alike.
final class ServerVerifierTests: XCTestCase {
  private typealias TLS = NIOHTTPClient.Configuration.TLS
  private typealias Transport = CertificateServers.Transport

  private struct NotAllowed: Error, CustomStringConvertible {
    var description: String { "this workload is not on the list" }
  }

  /// Lets callers wait, whatever happens to their tasks.
  private final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))
    private let count = Mutex(0)

    /// How many have waited.
    var arrivals: Int { self.count.withLock { $0 } }

    func wait() async {
      self.count.withLock { $0 += 1 }
      await withCheckedContinuation { continuation in
        let isOpen = self.state.withLock { state in
          if !state.isOpen { state.waiting.append(continuation) }
          return state.isOpen
        }
        if isOpen { continuation.resume() }
      }
    }

    func open() {
      let waiting = self.state.withLock { state in
        state.isOpen = true
        defer { state.waiting = [] }
        return state.waiting
      }
      for continuation in waiting { continuation.resume() }
    }
  }

  private func withServer(_ body: (CertificateServers, [UInt8]) async throws -> Void) async throws {
    let authority = ["basicConstraints=critical,CA:TRUE"]
    let root = try await TestCertificate.make("root", authority)
    let middle = try await TestCertificate.make("middle", authority, issuer: root)
    let own = try await TestCertificate.make(
      "own",
      names: "DNS:localhost,IP:127.0.0.1,URI:spiffe://prod.test/a",
      issuer: middle
    )
    try await CertificateServers.with([[own, middle]]) { servers in
      try await body(servers, Array(root.pem.utf8))
    }
  }

  private func message(_ result: Result<String, ConnectError>) -> String {
    switch result {
    case .success: "accepted"
    case .failure(let error): error.message ?? "\(error.code)"
    }
  }

  func testVerifierSeesTheServerAndAccepts() async throws {
    try await self.withServer { servers, roots in
      for transport in Transport.allCases {
        for waits in [false, true] {
          let seen = Mutex<[ServerVerifier.Server]>([])
          let verifier = ServerVerifier { server in
            seen.withLock { $0.append(server) }
            if waits { try await Task.sleep(for: .milliseconds(30)) }
          }
          let tls = TLS(trustRoots: .pemBytes(roots), serverVerifier: verifier)
          let result = await servers.get(0, over: transport, tls)
          XCTAssertEqual(self.message(result), "accepted")
          let all = seen.withLock { $0 }
          XCTAssertEqual(all.count, 1)
          let server = try XCTUnwrap(all.first)
          XCTAssertEqual(server.host, "localhost")
          XCTAssertEqual(server.port, servers.port(0, over: transport))
          let names = CertificateNames(
            dnsNames: ["localhost"],
            ipAddresses: ["127.0.0.1"],
            uris: ["spiffe://prod.test/a"]
          )
          XCTAssertEqual(server.names, names)
          let subjects = server.certificates.map { Certificate(der: $0)?.fields.subject.description }
          XCTAssertEqual(subjects, ["CN=own", "CN=middle", "CN=root"], "the verified chain")
        }
      }
    }
  }

  /// It comes after everything else, and has the last word also where nothing else is verified.
  func testVerifierRefuses() async throws {
    try await self.withServer { servers, roots in
      let asked = Mutex(0)
      let verifier = ServerVerifier { _ in
        asked.withLock { $0 += 1 }
        await Task.yield()
        throw NotAllowed()
      }
      let modes: [TLS.CertificateVerification] = [
        .full, .names([.spiffeTrustDomain("prod.test")]), .chainOnly, .none,
      ]
      for transport in Transport.allCases {
        for mode in modes {
          let tls = TLS(trustRoots: .pemBytes(roots), certificateVerification: mode, serverVerifier: verifier)
          guard case .failure(let error) = await servers.get(0, over: transport, tls) else {
            XCTFail("accepted")
            continue
          }
          XCTAssertEqual(error.code, .unavailable)
          XCTAssertTrue(error.isFinal)
          XCTAssertTrue(error.exception is NotAllowed, "\(String(describing: error.exception))")
          let words =
            "was not accepted: the client's own verifier (serverVerifier) says: this workload is not on the list"
          XCTAssertTrue(error.message?.contains(words) == true, "\(error)")
        }
        // The client may have tried again.
        XCTAssertGreaterThanOrEqual(asked.withLock { $0 }, modes.count)
        asked.withLock { $0 = 0 }
        let wrong = TLS(
          trustRoots: .pemBytes(roots),
          certificateVerification: .names([.dnsName("other.test")]),
          serverVerifier: verifier
        )
        let result = await servers.get(0, over: transport, wrong)
        XCTAssertTrue(self.message(result).contains("mismatch"))
        XCTAssertEqual(asked.withLock { $0 }, 0, "not asked about a server that is refused anyway")
      }
      XCTAssertEqual(servers.requestCount, 0)
    }
  }

  /// A verifier that ignores its cancellation. Its yes comes when the connection is long gone.
  func testVerifierThatIsTooLate() async throws {
    try await self.withServer { servers, roots in
      for transport in Transport.allCases {
        let gate = Gate()
        let verifier = ServerVerifier { _ in await gate.wait() }
        let tls = TLS(trustRoots: .pemBytes(roots), serverVerifier: verifier)
        await servers.withClient(0, over: transport, tls, { $0.timeouts.connect = .seconds(2) }) {
          client in
          let record = await client()
          XCTAssertEqual(record.failure?.error.code, .unavailable)
          let message = record.failure?.error.message ?? "accepted"
          let words =
            "TLS: the client's own verifier (serverVerifier) has not decided about https://localhost:"
          XCTAssertTrue(message.contains(words), message)
          XCTAssertGreaterThan(gate.arrivals, 0)
          XCTAssertEqual(servers.requestCount, transport == .tcp ? 0 : 1, "only the server over TCP counts")
          gate.open()
          // The next connection asks again, and gets its yes in time.
          var text = ""
          for _ in 0..<1000 where text != "accepted" {
            text = (await client()).failure.map { "\($0.error)" } ?? "accepted"
            try? await Task.sleep(for: .milliseconds(5))
          }
          XCTAssertEqual(text, "accepted")
        }
      }
      XCTAssertEqual(servers.requestCount, 1)
    }
  }

  /// The client ends while the verifier hangs.
  func testShutdownWhileTheVerifierHangs() async throws {
    try await self.withServer { servers, roots in
      for transport in Transport.allCases {
        let gate = Gate()
        let verifier = ServerVerifier { _ in await gate.wait() }
        let client = NIOHTTPClient(
          configuration: .init(
            tls: TLS(trustRoots: .pemBytes(roots), serverVerifier: verifier),
            http3: transport == .tcp ? nil : .alone
          )
        )
        let port = servers.port(0, over: transport)
        let endpoint = try client.endpoint(
          for: Origin(scheme: .https, host: "127.0.0.1", port: port),
          on: nil,
          requiresHTTP2: false
        )
        let request = HTTPStreamRequest(
          method: .get,
          target: "/",
          headers: [:],
          body: .complete(ByteBuffer())
        )
        async let record = StreamRecord.run(request, on: endpoint)
        while gate.arrivals == 0 { await Task.yield() }
        await client.shutdown(within: .zero)
        let failure = await record.failure
        XCTAssertEqual(failure?.error.code, .unavailable)
        gate.open()
      }
      XCTAssertEqual(servers.requestCount, 0)
    }
  }

  func testVerifiersAreEqualToTheirCopies() {
    let one = ServerVerifier { _ in }
    let copy = one
    let other = ServerVerifier { _ in }
    XCTAssertEqual(Set([one, copy, other]), [one, other])
    XCTAssertNotEqual(TLS(serverVerifier: one), TLS(serverVerifier: other))
    XCTAssertEqual(TLS(serverVerifier: one), TLS(serverVerifier: copy))
  }
}
