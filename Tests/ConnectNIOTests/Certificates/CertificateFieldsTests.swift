import ConnectChannels
import LoopbackServer
import NIOSSL
import XCTest

@testable import ConnectNIO

final class CertificateFieldsTests: XCTestCase {
  private func der(_ certificate: TestCertificate) throws -> [UInt8] {
    try NIOSSLCertificate(bytes: Array(certificate.pem.utf8), format: .pem).toDERBytes()
  }

  private func fields(_ extensions: [String], _ name: String = "name") async throws -> CertificateFields {
    let der = try self.der(try await TestCertificate.make(name, extensions))
    return try XCTUnwrap(CertificateFields(der: der))
  }

  func testExtensions() async throws {
    let none = try await self.fields([])
    XCTAssertEqual(none.version, 3)
    XCTAssertNil(none.isAuthority)
    XCTAssertFalse(none.isOfAuthority)
    XCTAssertTrue(none.maySignCertificates && none.mayBeServer && none.isSelfIssued)
    XCTAssertFalse(none.vouchesForServers)
    XCTAssertEqual(none.names.dnsNames, [Array("localhost".utf8)])
    XCTAssertEqual(none.names.addresses, [[127, 0, 0, 1]])
    XCTAssertEqual(none.names.text, "localhost, 127.0.0.1")
    let authority = try await self.fields([
      "basicConstraints=critical,CA:TRUE,pathlen:3", "keyUsage=critical,keyCertSign,cRLSign",
      "policyConstraints=critical,requireExplicitPolicy:0", "extendedKeyUsage=clientAuth",
    ])
    XCTAssertEqual(authority.isAuthority, true)
    XCTAssertTrue(authority.isOfAuthority)
    XCTAssertTrue(authority.maySignCertificates)
    XCTAssertFalse(authority.mayBeServer || authority.vouchesForServers)
    let server = try await self.fields([
      "basicConstraints=CA:FALSE", "keyUsage=digitalSignature", "extendedKeyUsage=clientAuth,serverAuth",
    ])
    XCTAssertEqual(server.isAuthority, false)
    XCTAssertFalse(server.isOfAuthority)
    XCTAssertTrue(server.mayBeServer)
    XCTAssertFalse(server.maySignCertificates)
    let any = try await self.fields(["basicConstraints=CA:TRUE", "extendedKeyUsage=anyExtendedKeyUsage"])
    XCTAssertTrue(any.mayBeServer && any.vouchesForServers)
  }

  /// Only old roots are authorities without saying so.
  func testVersions() async throws {
    let root = try await TestCertificate.make("root", version1: true)
    let rootFields = try XCTUnwrap(CertificateFields(der: try self.der(root)))
    guard rootFields.version == 1 else { throw XCTSkip("this OpenSSL makes no certificates of version 1") }
    XCTAssertNil(rootFields.isAuthority)
    XCTAssertTrue(rootFields.isOfAuthority)
    let other = try await TestCertificate.make("other", issuer: root, version1: true)
    let otherFields = try XCTUnwrap(CertificateFields(der: try self.der(other)))
    XCTAssertEqual(otherFields.version, 1)
    XCTAssertFalse(otherFields.isOfAuthority)
  }

  func testLengths() {
    for bytes in [
      [0x04, 0x80, 1], [0x04, 0x84, 0, 0, 0, 1, 1], [0x04, 0x84, 0xff, 0xff, 0xff, 0xff, 1],
      [0x04, 0x83, 0xff, 0xff, 0xff, 1], [0x04, 0x82, 0],
    ] as [[UInt8]] {
      var reader = DERReader(bytes[...])
      XCTAssertNil(reader.next()?.content, "\(bytes)")
    }
    let bytes: [UInt8] = [0x04, 0x83, 0, 0, 1, 7, 0x04, 0x01, 8]
    var reader = DERReader(bytes[...])
    XCTAssertEqual(reader.next(DERReader.octetString), [7])
    XCTAssertEqual(reader.next(DERReader.octetString), [8])
    XCTAssertNil(reader.nextTag)
  }

  func testNames() async throws {
    let issuer = try await TestCertificate.make("Test  Issuer", ["basicConstraints=CA:TRUE"])
    let der = try self.der(try await TestCertificate.make("server", issuer: issuer))
    let fields = try XCTUnwrap(CertificateFields(der: der))
    XCTAssertEqual(fields.subject.description, "CN=server")
    XCTAssertEqual(fields.issuer.description, "CN=Test  Issuer")
    XCTAssertFalse(fields.isSelfIssued)
    let same = try await self.fields([], "test issuer")
    XCTAssertEqual(fields.issuer, same.subject)
    XCTAssertNotEqual(fields.issuer, fields.subject)
  }

  func testAlternativeNames() async throws {
    let names = "DNS:*.a.test,IP:::1,URI:https://b.test,email:c@d.test"
    let certificate = try await TestCertificate.make("common.test", names: names)
    let fields = try XCTUnwrap(CertificateFields(der: try self.der(certificate)))
    XCTAssertEqual(fields.names.dnsNames.first, Array("*.a.test".utf8))
    XCTAssertEqual(fields.names.addresses, [Array(repeating: 0, count: 15) + [1]])
    XCTAssertEqual(fields.names.text, "*.a.test, ::1, https://b.test")
    XCTAssertEqual(PresentedIdentifiers(dnsNames: [Array("a\u{1b}[2Jb".utf8)]).text, "a?[2Jb")
    let bare = try await TestCertificate.make("common.test", names: nil)
    let none = try XCTUnwrap(CertificateFields(der: try self.der(bare)))
    XCTAssertEqual(none.names, PresentedIdentifiers())
    XCTAssertNil(none.names.text)
  }

  func testNamesAreFitForMessages() {
    XCTAssertEqual(CertificateName.readable("a\u{1b}[2J\nb\u{202e}"), "a?[2J?b?")
    XCTAssertEqual(CertificateName.readable(String(repeating: "x", count: 1000)).count, 100)
  }

  /// Whatever is cut off or changed, nothing traps.
  func testBrokenBytes() async throws {
    let der = try self.der(
      try await TestCertificate.make("name", ["basicConstraints=CA:TRUE", "keyUsage=keyCertSign"])
    )
    for end in 0..<der.count { XCTAssertNil(CertificateFields(der: Array(der[..<end]))) }
    for index in der.indices {
      for byte in [0, 1, 0x7f, 0x80, 0x84, 0xff] as [UInt8] {
        var changed = der
        changed[index] = byte
        _ = CertificateFields(der: changed)?.subject.description
      }
    }
  }
}
