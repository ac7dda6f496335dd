import Connect
import ConnectNIO
import LoopbackServer
import XCTest

@testable import connectrpc

final class TLSFactsTests: XCTestCase {
  func testLines() async throws {
    let root = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"], names: nil)
    let own = try await TestCertificate.make(
      "own",
      names: "DNS:localhost,URI:spiffe://a.test/b",
      issuer: root
    )
    let chain = try [own, root].map { certificate in
      try XCTUnwrap(Certificate.all(inPEM: Array(certificate.pem.utf8))?.first).der
    }
    let facts = TLSFacts(
      .init(version: "TLS 1.3", applicationProtocol: "h2", certificates: chain + [[1, 2]])
    )
    XCTAssertEqual(
      facts.lines,
      [
        "TLS 1.3, ALPN h2",
        "certificate 'CN=own', issued by 'CN=root', valid until 2099-01-01T00:00:00Z, for localhost, spiffe://a.test/b",
        "issuer 'CN=root', self-signed, valid until 2099-01-01T00:00:00Z",
        "issuer that cannot be read",
      ]
    )
    XCTAssertEqual(TLSFacts(.init()).lines, ["TLS, no ALPN"])
  }
}
