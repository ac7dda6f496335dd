import ConnectChannels
import Foundation
import LoopbackServer
import XCTest

@testable import ConnectNIO

/// What leads to a trusted certificate, and what does not, without sockets.
final class CertificateVerifierTests: XCTestCase {
  private static let authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign"]
  /// When certificates of `.past` are valid, and those of `.current` as well.
  private static let past = 1_579_000_000

  private func certificate(_ certificate: TestCertificate) throws -> Certificate {
    try XCTUnwrap(Certificate.all(inPEM: Array(certificate.pem.utf8))?.first)
  }

  /// Why a chain is refused; nil if it is not.
  private func refusal(
    _ chain: [TestCertificate],
    trusting anchors: [TestCertificate],
    at now: Int = Certificate.now
  ) throws -> String? {
    let verifier = CertificateVerifier(TrustAnchors(try anchors.map { try self.certificate($0) }))
    let certificates = try chain.map { try self.certificate($0) }
    do throws(CertificateRefusal) {
      _ = try verifier.verify(certificates[0], issuers: Array(certificates.dropFirst()), at: now)
      return nil
    } catch {
      return error.reason
    }
  }

  private func assertRefused(
    _ chain: [TestCertificate],
    trusting anchors: [TestCertificate],
    at now: Int = Certificate.now,
    _ words: String...,
    line: UInt = #line
  ) throws {
    let reason = try self.refusal(chain, trusting: anchors, at: now)
    for word in words {
      XCTAssertTrue(reason?.contains(word) == true, "no \(word) in: \(reason ?? "accepted")", line: line)
    }
  }

  // MARK: Renewed authorities

  func testRenewedRoots() async throws {
    let old = try await TestCertificate.make("root", Self.authority, validity: .past)
    let new = try await TestCertificate.make("root", Self.authority, key: old)
    let future = try await TestCertificate.make("root", Self.authority, validity: .future, key: old)
    let intermediate = try await TestCertificate.make("intermediate", Self.authority, issuer: new)
    for issuer in [old, new, future] {
      let leaf = try await TestCertificate.make("leaf", issuer: issuer)
      for anchors in [[old, new], [new, old], [future, new], [old, future, new, old], [new]] {
        XCTAssertNil(try self.refusal([leaf], trusting: anchors))
        // What the server shows of it changes nothing.
        for shown in [[old], [new], [future], [old, new]] {
          XCTAssertNil(try self.refusal([leaf] + shown, trusting: anchors))
        }
      }
      try self.assertRefused(
        [leaf, new],
        trusting: [old],
        "the trust root 'CN=root' that has issued it has expired",
        "2020-02-01T00:00:00Z"
      )
      try self.assertRefused([leaf], trusting: [future], "the trust root 'CN=root'", "is not valid yet")
    }
    let leaf = try await TestCertificate.make("leaf", issuer: intermediate)
    XCTAssertNil(try self.refusal([leaf, intermediate], trusting: [old, new]))
    try self.assertRefused(
      [leaf, intermediate],
      trusting: [old],
      "the trust root 'CN=root' of its issuers has expired"
    )
  }

  func testRenewedIntermediates() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let old = try await TestCertificate.make("middle", Self.authority, validity: .past, issuer: root)
    let new = try await TestCertificate.make("middle", Self.authority, issuer: root, key: old)
    let leaf = try await TestCertificate.make("leaf", issuer: new)
    for shown in [[old, new], [new, old], [old, root, new], [old, old, new]] {
      XCTAssertNil(try self.refusal([leaf] + shown, trusting: [root]))
      // Nor does an expired one among what is trusted.
      for anchors in [[old, root], [root, old], [old, new], [new, old]] {
        XCTAssertNil(try self.refusal([leaf] + shown, trusting: anchors))
      }
    }
    for anchors in [[old, new], [new, old]] { XCTAssertNil(try self.refusal([leaf], trusting: anchors)) }
    try self.assertRefused(
      [leaf, old],
      trusting: [root],
      "the certificate of its issuer 'CN=middle' has expired"
    )
    try self.assertRefused(
      [leaf],
      trusting: [old],
      "the trust root 'CN=middle' that has issued it has expired"
    )
    try self.assertRefused([leaf, old], trusting: [old], "'CN=middle'", "has expired")
  }

  /// Two levels, each renewed, in any order.
  func testRenewedChains() async throws {
    let oldRoot = try await TestCertificate.make("root", Self.authority, validity: .past)
    let root = try await TestCertificate.make("root", Self.authority, key: oldRoot)
    let oldUpper = try await TestCertificate.make("upper", Self.authority, validity: .past, issuer: oldRoot)
    let upper = try await TestCertificate.make("upper", Self.authority, issuer: root, key: oldUpper)
    let oldLower = try await TestCertificate.make("lower", Self.authority, validity: .past, issuer: oldUpper)
    let lower = try await TestCertificate.make("lower", Self.authority, issuer: upper, key: oldLower)
    let leaf = try await TestCertificate.make("leaf", issuer: lower)
    let all = [oldLower, oldUpper, lower, upper, oldRoot, root]
    for shift in all.indices {
      let shown = Array(all[shift...] + all[..<shift])
      for anchors in [[oldRoot, root], [root, oldRoot]] {
        XCTAssertNil(try self.refusal([leaf] + shown, trusting: anchors))
        XCTAssertNil(try self.refusal([leaf] + shown.reversed(), trusting: anchors))
      }
    }
    let expired = try await TestCertificate.make("leaf", validity: .past, issuer: lower)
    try self.assertRefused([expired, leaf] + all, trusting: [root], "it has expired")
    try self.assertRefused([leaf, oldLower, upper], trusting: [root], "'CN=lower' has expired")
    try self.assertRefused([leaf, lower, oldUpper], trusting: [root], "'CN=upper' has expired")
  }

  /// The time of the handshake counts, not that of the start.
  func testTimeGoesOn() async throws {
    let old = try await TestCertificate.make("root", Self.authority, validity: .past)
    let new = try await TestCertificate.make("root", Self.authority, validity: .future, key: old)
    let leaf = try await TestCertificate.make("leaf", issuer: old)
    let later = 4_040_000_000
    for anchors in [[old, new], [new, old]] {
      XCTAssertNil(try self.refusal([leaf], trusting: anchors, at: Self.past))
      XCTAssertNil(try self.refusal([leaf], trusting: anchors, at: later))
      try self.assertRefused([leaf], trusting: anchors, "the trust root 'CN=root'")
      try self.assertRefused([leaf], trusting: anchors, at: 4_100_000_000, "it has expired")
    }
  }

  func testWhenAChainExpires() async throws {
    let old = try await TestCertificate.make("middle", Self.authority, validity: .past)
    let new = try await TestCertificate.make("middle", Self.authority, key: old)
    let leaf = try await TestCertificate.make("leaf", issuer: new)
    let verifier = CertificateVerifier(TrustAnchors([try self.certificate(old), try self.certificate(new)]))
    let own = try self.certificate(leaf)
    // Certificates that are not needed do not count.
    let expiry = try verifier.verify(own, issuers: [try self.certificate(old)]).expiry
    XCTAssertEqual(expiry, try self.certificate(new).notAfter)
    XCTAssertEqual(
      try verifier.verify(own, issuers: [], at: Self.past).expiry,
      try self.certificate(old).notAfter
    )
  }

  // MARK: Revocation lists

  /// A chain counts until the first list that is needed has expired: the newest of each authority.
  func testWhenRevocationListsExpire() async throws {
    let authority = ["basicConstraints=critical,CA:TRUE"]
    let root = try await TestCertificate.make("root", authority)
    let middle = try await TestCertificate.make("middle", authority, issuer: root)
    let leaf = try await TestCertificate.make("leaf", issuer: middle)
    let texts = [
      try await root.revocationList(until: "20500101000000Z"),
      try await middle.revocationList(until: "20400101000000Z"),
      try await middle.revocationList(until: "20450101000000Z"),
    ]
    let lists = try XCTUnwrap(RevocationList.all(in: Array(texts.joined().utf8)))
    let verifier = CertificateVerifier(
      TrustAnchors([try self.certificate(root)]),
      revocation: RevocationLists(lists)
    )
    let (own, issuer) = (try self.certificate(leaf), try self.certificate(middle))
    let end = 2_366_841_600
    for _ in 0..<2 { XCTAssertEqual(try verifier.verify(own, issuers: [issuer]).expiry, end) }
    XCTAssertEqual(try verifier.verify(own, issuers: [issuer], at: end - 1).expiry, end)
    XCTAssertThrowsError(try verifier.verify(own, issuers: [issuer], at: end))
  }

  /// RFC 5280 (section 5.1.2.5) wants each list to say when the next one comes.
  func testRevocationListWithoutAnEnd() async throws {
    func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
      let count = content.count
      if count < 0x80 { return [tag, UInt8(count)] + content }
      if count < 0x100 { return [tag, 0x81, UInt8(count)] + content }
      return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xff)] + content
    }
    let root = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    let lines = try await root.revocationList().split(separator: "\n").filter { !$0.hasPrefix("-") }
    let der = Array(try XCTUnwrap(Data(base64Encoded: lines.joined())))
    let whole = try XCTUnwrap(RevocationList.all(in: der)?.first)
    XCTAssertNil(whole.problem)
    var outer = DERReader(der[...])
    var parts = try XCTUnwrap(outer.enter(DERReader.sequence))
    var fields = try XCTUnwrap(parts.enter(DERReader.sequence))
    var (kept, rest): ([UInt8], [UInt8]) = ([], [])
    var times = 0
    while let field = fields.next() {
      let isTime = field.tag == 0x17 || field.tag == 0x18
      if isTime { times += 1 }
      if !isTime || times == 1 { kept += element(field.tag, Array(field.content)) }
    }
    while let part = parts.next() { rest += element(part.tag, Array(part.content)) }
    let endless = element(DERReader.sequence, element(DERReader.sequence, kept) + rest)
    let list = try XCTUnwrap(RevocationList.all(in: endless)?.first)
    XCTAssertEqual(list.problem, "it does not say when the next list comes (nextUpdate)")
  }

  // MARK: Nothing is weaker

  /// An expired certificate is left out, and so are those who name it, but nobody else comes in.
  func testCertificatesThatLookLikeRenewedOnes() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let old = try await TestCertificate.make("middle", Self.authority, validity: .past, issuer: root)
    let leaf = try await TestCertificate.make("leaf", issuer: old)
    // The same name and key, but signed by itself, by another, by the leaf, or no authority.
    let selfSigned = try await TestCertificate.make("middle", Self.authority, key: old)
    let stranger = try await TestCertificate.make("root", Self.authority)
    let foreign = try await TestCertificate.make("middle", Self.authority, issuer: stranger, key: old)
    let forged = try await TestCertificate.make("middle", Self.authority, issuer: leaf, key: old)
    let weak = try await TestCertificate.make("middle", ["basicConstraints=CA:FALSE"], issuer: root, key: old)
    let bare = try await TestCertificate.make("middle", issuer: root, key: old)
    let client = Self.authority + ["extendedKeyUsage=clientAuth"]
    let forClients = try await TestCertificate.make("middle", client, issuer: root, key: old)
    let key = try await TestCertificate.make("middle", Self.authority, issuer: root)
    for other in [selfSigned, foreign, forged, weak, bare, forClients, key] {
      for shown in [[old, other], [other, old], [other], [other, stranger]] {
        XCTAssertNotNil(try self.refusal([leaf] + shown, trusting: [root]))
      }
    }
    for other in [weak, bare, forClients] {
      XCTAssertNotNil(try self.refusal([leaf, old], trusting: [other]))
      XCTAssertNotNil(try self.refusal([leaf, old, other], trusting: [root, other]))
    }
    let unknown = ["1.2.3.4=critical,DER:05:00"]
    let critical = try await TestCertificate.make("middle", Self.authority + unknown, issuer: root, key: old)
    try self.assertRefused([leaf, old, critical], trusting: [root], "critical extension")
  }

  /// An authority says how many others may be below it, and for which names.
  func testConstraints() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    func authority(_ name: String, _ constraints: String..., issuer: TestCertificate) async throws
      -> TestCertificate
    {
      try await TestCertificate.make(name, constraints + ["keyUsage=keyCertSign"], issuer: issuer)
    }
    let short = try await authority("short", "basicConstraints=critical,CA:TRUE,pathlen:0", issuer: root)
    let below = try await authority("below", "basicConstraints=critical,CA:TRUE", issuer: short)
    let good = try await TestCertificate.make("leaf", issuer: short)
    let bad = try await TestCertificate.make("leaf", issuer: below)
    XCTAssertNil(try self.refusal([good, short], trusting: [root]))
    try self.assertRefused([bad, below, short], trusting: [root], "'CN=short'", "fewer authorities")

    let named = "nameConstraints=critical,permitted;DNS:a.test"
    let only = try await authority("only", "basicConstraints=critical,CA:TRUE", named, issuer: root)
    let inside = try await TestCertificate.make("leaf", names: "DNS:b.a.test", issuer: only)
    let outside = try await TestCertificate.make("leaf", names: "DNS:b.test", issuer: only)
    XCTAssertNil(try self.refusal([inside, only], trusting: [root]))
    XCTAssertNil(try self.refusal([inside], trusting: [only]))
    try self.assertRefused([outside, only], trusting: [root], "name constraints")
    try self.assertRefused([outside], trusting: [only], "name constraints")
  }

  /// Hashes that can be forged.
  func testWeakSignatures() async throws {
    let root = try await TestCertificate.make("root", Self.authority, digest: "sha1")
    let middle = try await TestCertificate.make("middle", Self.authority, issuer: root)
    let weak = try await TestCertificate.make("weak", Self.authority, issuer: root, digest: "sha1")
    let leaf = try await TestCertificate.make("leaf", issuer: middle)
    let below = try await TestCertificate.make("leaf", issuer: weak)
    let own = try await TestCertificate.make("leaf", issuer: middle, digest: "sha1")
    XCTAssertNil(try self.refusal([leaf, middle], trusting: [root]))
    try self.assertRefused([own, middle], trusting: [root], "it is signed with MD5 or SHA-1")
    try self.assertRefused([below, weak], trusting: [root], "issuer 'CN=weak' is signed with MD5 or SHA-1")
    // Their own signatures do not matter.
    XCTAssertNil(try self.refusal([below, weak], trusting: [weak]))
    XCTAssertNil(try self.refusal([own], trusting: [own]))
    XCTAssertNil(try self.refusal([leaf, weak, middle], trusting: [root]))
  }

  func testSignatures() async throws {
    let root = try await TestCertificate.make("root", Self.authority)
    let stranger = try await TestCertificate.make("root", Self.authority)
    let leaf = try await TestCertificate.make("leaf", issuer: stranger)
    try self.assertRefused([leaf], trusting: [root], "has not signed it (unknown CA)")
    try self.assertRefused([leaf, stranger], trusting: [root], "has not signed it (unknown CA)")
    XCTAssertNotNil(try self.refusal([leaf], trusting: []))
    let changed = try self.certificate(try await TestCertificate.make("leaf", issuer: root))
    var der = changed.der
    der[der.count - 1] ^= 1
    if let certificate = Certificate(der: der) {
      let verifier = CertificateVerifier(TrustAnchors([try self.certificate(root)]))
      XCTAssertThrowsError(try verifier.verify(certificate, issuers: []))
      XCTAssertNoThrow(try verifier.verify(changed, issuers: []))
    }
  }

  // MARK: Certificates

  func testBytesThatAreNoCertificate() async throws {
    let good = try self.certificate(try await TestCertificate.make("leaf"))
    XCTAssertNil(Certificate(der: []))
    XCTAssertNil(Certificate(der: [1, 2, 3]))
    XCTAssertNil(Certificate(der: good.der + [0]))
    for end in stride(from: 0, to: good.der.count, by: 7) {
      XCTAssertNil(Certificate(der: Array(good.der[..<end])))
    }
    XCTAssertEqual(Certificate(der: good.der)?.der, good.der)
  }

  func testPEM() async throws {
    let one = try await TestCertificate.make("one")
    let two = try await TestCertificate.make("two", Self.authority)
    let mark = "\u{feff}"
    func count(_ text: String) -> Int? { Certificate.all(inPEM: Array(text.utf8))?.count }
    for text in [one.pem + two.pem, mark + one.pem + mark + two.pem, "# \(mark)\n\(one.pem)\n\n\(two.pem)\n"]
    {
      for text in [text, text.replacing("\n", with: "\r\n")] { XCTAssertEqual(count(text), 2, text) }
    }
    XCTAssertEqual(count(one.keyPEM + one.pem), 1)
    for text in ["", "x", one.keyPEM, mark, String(one.pem.dropLast(40)), one.pem.replacing("M", with: "!")] {
      XCTAssertNil(count(text), text)
    }
    let broken = two.pem.replacing("\nMII", with: "\nMIX")
    XCTAssertNil(count(one.pem + broken))
    let trusted = two.pem.replacing(" CERTIFICATE-", with: " TRUSTED CERTIFICATE-")
    XCTAssertEqual(count(one.pem + trusted), 2)
    let anchors = try XCTUnwrap(TrustAnchors(pem: Array((one.pem + trusted).utf8)))
    XCTAssertTrue(anchors.haveTrustSettings)
    XCTAssertThrowsError(try CertificateVerifier(anchors).verify(try self.certificate(one), issuers: []))
  }
}
