internal import CQUICPeer
internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import XCTest

@testable internal import ConnectHTTP3

final class HTTP3HandshakeTests: XCTestCase {
  private typealias TLS = NIOHTTPClient.Configuration.TLS

  private func certificates() async throws -> TestCertificates { try await SharedCertificates.shared.get() }

  /// The error of a handshake that has to fail.
  ///
  /// - Parameter isFinal: Whether it would fail again.
  private func error(
    _ peer: HTTP3TestPeer,
    isFinal: Bool = true,
    file: StaticString = #filePath,
    line: UInt = #line
  ) throws -> ConnectError {
    try peer.elapse(.milliseconds(200))
    let error = try XCTUnwrap(peer.handshakeError, file: file, line: line)
    XCTAssertEqual(error.code, .unavailable, file: file, line: line)
    XCTAssertEqual(error.isFinal, isFinal, file: file, line: line)
    XCTAssertEqual(peer.delegate.events, [], file: file, line: line)
    return error
  }

  private static func trusting(_ certificates: TestCertificate...) -> TLS {
    TLS(trustRoots: .pemBytes(Array(certificates.map(\.pem).joined().utf8)))
  }

  // MARK: The server's certificate

  func testUntrustedServer() async throws {
    let others = try await TestCertificates.make()
    let peer = try HTTP3TestPeer(
      try await self.certificates(),
      tls: TLS(trustRoots: .pemBytes(Array(others.authorityPEM.utf8)))
    )
    let message = try self.error(peer).message ?? ""
    XCTAssertTrue(
      message.hasPrefix("TLS: the certificate of https://localhost was not accepted: "),
      message
    )
    XCTAssertTrue(message.contains("unknown CA"), message)
    XCTAssertNotEqual(peer.serverError, 0, "the server was told")
  }

  func testWrongName() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates(), serverName: "other.example")
    XCTAssertEqual(
      try self.error(peer).message,
      """
      TLS: hostname mismatch: the certificate of https://other.example is not for 'other.example', \
      but for localhost, 127.0.0.1, ::1
      """
    )
  }

  func testAnyServerWithoutVerification() async throws {
    let tls = TLS(certificateVerification: .none)
    let peer = try HTTP3TestPeer(try await self.certificates(), tls: tls, serverName: "other.example")
    try peer.connect()
  }

  func testCertificateThatHasExpired() async throws {
    let authority = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    let expired = try await TestCertificate.make("old", validity: .past, issuer: authority)
    let peer = try HTTP3TestPeer(
      try await self.certificates().serving(expired),
      tls: Self.trusting(authority)
    )
    let message = try self.error(peer).message ?? ""
    XCTAssertTrue(message.contains("it has expired: it was valid until 2020-02-01T00:00:00Z"), message)
  }

  func testTrustAnchors() async throws {
    let authority = ["basicConstraints=critical,CA:TRUE"]
    let root = try await TestCertificate.make("root", authority)
    let intermediate = try await TestCertificate.make("intermediate", authority, issuer: root)
    let server = try await TestCertificate.make("server", ["basicConstraints=CA:FALSE"], issuer: intermediate)
    let pinned = try await TestCertificate.make("pinned", ["basicConstraints=CA:FALSE"])
    let clientOnly = try await TestCertificate.make(
      "client",
      ["basicConstraints=CA:FALSE", "extendedKeyUsage=clientAuth"],
      issuer: root
    )
    let belowPinned = try await TestCertificate.make("below", ["basicConstraints=CA:FALSE"], issuer: pinned)
    let old = try await TestCertificate.make("root", authority, validity: .past)
    let belowOld = try await TestCertificate.make("below old", ["basicConstraints=CA:FALSE"], issuer: old)
    struct Case {
      var what: String
      var shown: [TestCertificate]
      var trusted: TestCertificate
      /// Nil if it is trusted.
      var words: String?
    }
    let cases = [
      Case(what: "chain", shown: [server, intermediate], trusted: root),
      Case(what: "chain without its middle", shown: [server], trusted: root, words: "unknown CA"),
      Case(what: "intermediate authority", shown: [server], trusted: intermediate),
      Case(what: "intermediate authority, shown too", shown: [server, intermediate], trusted: intermediate),
      Case(what: "pinned", shown: [pinned], trusted: pinned),
      Case(what: "pinned, with an issuer", shown: [server, intermediate], trusted: server),
      Case(what: "another of the same issuer", shown: [server], trusted: pinned, words: "unknown CA"),
      Case(
        what: "signed by a pinned one",
        shown: [belowPinned, pinned],
        trusted: pinned,
        words: "no certificate authority"
      ),
      Case(what: "for clients", shown: [clientOnly], trusted: root, words: "not accepted"),
      Case(
        what: "for clients, pinned",
        shown: [clientOnly],
        trusted: clientOnly,
        words: "extended key usage"
      ),
      Case(what: "old root", shown: [belowOld], trusted: old, words: "has expired"),
    ]
    let certificates = try await self.certificates()
    for item in cases {
      let serving = certificates.serving(item.shown[0], issuers: Array(item.shown.dropFirst()))
      let peer = try HTTP3TestPeer(serving, tls: Self.trusting(item.trusted))
      if let words = item.words {
        let message = try self.error(peer).message ?? ""
        XCTAssertTrue(message.contains(words), "\(item.what): \(message)")
      } else {
        try peer.run()
        XCTAssertNil(peer.handshakeError, item.what)
        XCTAssertNotNil(peer.handshake, item.what)
      }
    }
  }

  func testNoCommonProtocol() async throws {
    let name = strdup("hq-interop")
    defer { free(name) }
    let peer = try HTTP3TestPeer(try await self.certificates()) { $0.protocol = UnsafePointer(name) }
    XCTAssertEqual(
      try self.error(peer).message,
      """
      the TLS handshake with https://localhost failed: no common version of HTTP (ALPN) \
      (TLSV1_ALERT_NO_APPLICATION_PROTOCOL)
      """
    )
  }

  // MARK: The client's certificate

  func testClientCertificate() async throws {
    let certificates = try await self.certificates()
    var tls = TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    tls.clientCertificate = .pemBytes(
      chain: Array(certificates.clientCertificatePEM.utf8),
      privateKey: Array(certificates.clientKeyPEM.utf8)
    )
    let peer = try HTTP3TestPeer(certificates, tls: tls, requiresClientCertificate: true)
    try peer.elapse(.milliseconds(100))
    try peer.connect()
    XCTAssertEqual(peer.delegate.events, [.canServe(100)])
  }

  func testServerThatRequiresAClientCertificate() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates(), requiresClientCertificate: true)
    let message = try self.error(peer).message ?? ""
    XCTAssertTrue(message.hasPrefix("the TLS handshake with https://localhost failed: "), message)
    XCTAssertTrue(message.contains("client certificate"), message)
  }

  func testClientCertificateOfAnotherAuthority() async throws {
    let certificates = try await self.certificates()
    let others = try await TestCertificates.make()
    var tls = TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    tls.clientCertificate = .pemBytes(
      chain: Array(others.clientCertificatePEM.utf8),
      privateKey: Array(others.clientKeyPEM.utf8)
    )
    let peer = try HTTP3TestPeer(certificates, tls: tls, requiresClientCertificate: true)
    let message = try self.error(peer).message ?? ""
    XCTAssertTrue(message.hasPrefix("the TLS handshake with https://localhost failed: "), message)
    XCTAssertTrue(message.contains("client certificate"), message)
  }

  // MARK: QUIC

  func testRetry() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates())
    peer.asksForToken = true
    try peer.connect()
    XCTAssertTrue(peer.isServerEstablished)
  }

  /// Before it knows that the client is where it says, a server sends three times what it has received at most (RFC 9000, section
  /// 8). Datagrams are lost besides, so that the client has to ask again.
  func testCertificatesThatAreLargerThanTheServerMaySend() async throws {
    let authority = ["basicConstraints=critical,CA:TRUE"]
    var chain = [try await TestCertificate.make("root", authority)]
    for index in 0..<12 {
      let comment = String(repeating: "x", count: 200)
      let extensions = authority + ["nsComment=\(comment)"]
      chain.append(
        try await TestCertificate.make("level \(index)", extensions, issuer: chain[chain.count - 1])
      )
    }
    let server = try await TestCertificate.make("server", issuer: chain[chain.count - 1])
    let serving = try await self.certificates().serving(server, issuers: chain.dropFirst().reversed())
    for loss in [0, 3] {
      let peer = try HTTP3TestPeer(serving, tls: Self.trusting(chain[0]))
      var count = 0
      peer.network = { _, datagram in
        count += 1
        return loss > 0 && count % loss == 0 ? [] : [datagram]
      }
      try peer.elapse(.seconds(20))
      XCTAssertNil(peer.handshakeError)
      XCTAssertTrue(peer.isServerEstablished, "every \(loss). datagram is lost")
    }
  }

  func testServerOfAnotherVersion() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates())
    peer.network = { [unowned peer] direction, datagram in
      guard direction == .toServer, datagram.count > 50 else { return [] }
      // The client's identifiers, one after the other, behind the version.
      let destination = Array(datagram[6..<6 + Int(datagram[5])])
      let start = 6 + destination.count
      let source = Array(datagram[start + 1..<start + 1 + Int(datagram[start])])
      let answer: [UInt8] =
        [0x80, 0, 0, 0, 0, UInt8(source.count)] + source + [UInt8(destination.count)] + destination
        + [0xff, 0, 0, 0x99, 0x1a, 0x2a, 0x3a, 0x4a]
      peer.injectAtClient(answer)
      return []
    }
    XCTAssertEqual(try self.error(peer).message, "https://localhost does not speak QUIC version 1")
  }

  func testRefusedConnection() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates())
    peer.network = { [unowned peer] direction, datagram in
      // Instead of its handshake, the server closes.
      if direction == .toClient, peer.toClientCount == 0, !datagram.isEmpty { return [] }
      return [datagram]
    }
    try peer.run()
    peer.network = { [$1] }
    peer.close(2, reason: "full", isApplication: false)
    XCTAssertEqual(
      try self.error(peer, isFinal: false).message,
      "https://localhost refused the QUIC connection: CONNECTION_REFUSED: full"
    )
  }

  func testHandshakeThatIsGivenUp() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates())
    peer.network = { _, _ in [] }
    try peer.elapse(.seconds(5))
    XCTAssertNil(peer.handshake)
    peer.connection.handshake.giveUp(ConnectError(code: .unavailable, message: "too late"))
    XCTAssertEqual(try self.error(peer, isFinal: false).message, "too late")
  }

  func testServerThatAllowsNoControlStreams() async throws {
    let peer = try HTTP3TestPeer(try await self.certificates()) { $0.uni_streams = 0 }
    try peer.elapse(.milliseconds(100))
    XCTAssertEqual(peer.handshakeError?.code, .internalError)
  }
}
