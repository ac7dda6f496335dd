import ConnectChannels
import ConnectNIO
import LoopbackServer
import XCTest

@testable import connectrpc

/// What `doctor` says of a server's certificates.
final class CertificateChainTests: XCTestCase {
  private static let authority = ["basicConstraints=critical,CA:TRUE"]

  private func certificates(_ certificates: [TestCertificate]) throws -> [Certificate] {
    try certificates.map { try XCTUnwrap(Certificate.all(inPEM: Array($0.pem.utf8))?.first) }
  }

  private func findings(
    _ chain: [TestCertificate],
    trusting anchors: [TestCertificate],
    name: String = "localhost"
  ) throws -> [Finding] {
    CertificateChain(
      certificates: try self.certificates(chain),
      name: name,
      identity: try? ReferenceIdentifier(name),
      anchors: TrustAnchors(try self.certificates(anchors)),
      isInsecure: false
    ).findings
  }

  private func faults(_ findings: [Finding]) -> [String] {
    findings.filter { $0.verdict == .broken }.map { "\($0.subject): \($0.text)" }
  }

  func testRenewedAuthorities() async throws {
    let oldRoot = try await TestCertificate.make("root", Self.authority, validity: .past)
    let root = try await TestCertificate.make("root", Self.authority, key: oldRoot)
    let old = try await TestCertificate.make("middle", Self.authority, validity: .past, issuer: root)
    let new = try await TestCertificate.make("middle", Self.authority, issuer: root, key: old)
    let leaf = try await TestCertificate.make("leaf", issuer: new)
    for shown in [[old, new], [new, old]] {
      for anchors in [[oldRoot, root], [root, oldRoot]] {
        let findings = try self.findings([leaf] + shown, trusting: anchors)
        XCTAssertEqual(self.faults(findings), [])
        // It is worth a word all the same.
        XCTAssertEqual(findings.filter { $0.advice?.contains("no longer send it") == true }.count, 1)
      }
    }
    let needed = self.faults(try self.findings([leaf, old], trusting: [root]))
    XCTAssertEqual(needed.count, 1)
    XCTAssertTrue(needed.first?.hasPrefix("issuer: 'CN=middle'") == true, "\(needed)")
    let untrusted = self.faults(try self.findings([leaf, new], trusting: [oldRoot]))
    XCTAssertEqual(untrusted.count, 1)
    XCTAssertTrue(untrusted.first?.hasPrefix("trust: the trusted 'CN=root'") == true, "\(untrusted)")
  }

  func testNames() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let leaf = try await TestCertificate.make("local.test", names: "DNS:*.test,IP:10.0.0.1", issuer: root)
    for (name, isFault) in [("local.test", true), ("10.0.0.1", false), ("[::1]", true), ("a..b", true)] {
      let faults = self.faults(try self.findings([leaf], trusting: [root], name: name))
      XCTAssertEqual(faults.contains { $0.hasPrefix("server name: ") }, isFault, "\(name): \(faults)")
    }
  }
}
