import XCTest

@testable import ConnectChannels

/// Values of `alt-svc` fields (RFC 7838, section 3).
final class AltSvcParserTests: XCTestCase {
  private func alternatives(_ values: String...) -> [AlternativeService]? {
    guard case .alternatives(let found)? = AltSvcField(values) else { return nil }
    return found
  }

  func testOneAlternative() {
    let found = self.alternatives(#"h3=":443"; ma=86400"#)
    XCTAssertEqual(found, [AlternativeService(protocolName: "h3", port: 443)])
    XCTAssertEqual(found?.first?.maximumAge, .seconds(86_400))
  }

  func testDefaultsAndParameters() {
    let found = self.alternatives(#"h3=":8443";ma=60;persist=1;x=y;z="a;b,\"c""#)
    XCTAssertEqual(found?.map(\.port), [8443])
    XCTAssertEqual(found?.first?.maximumAge, .seconds(60))
    XCTAssertEqual(self.alternatives(#"h3=":1""#)?.first?.maximumAge, .seconds(86_400))
    XCTAssertEqual(self.alternatives(#"h3=":1"; MA=5; persist=2"#)?.first?.maximumAge, .seconds(5))
    XCTAssertEqual(self.alternatives(#"h3=":1"; ma="5""#)?.first?.maximumAge, .seconds(5))
    let long = self.alternatives(#"h3=":1"; ma=99999999999999999999999"#)
    XCTAssertEqual(long?.first?.maximumAge, .seconds(Int(Int32.max)))
  }

  func testSeveralAlternatives() {
    let found = self.alternatives(
      #"h2="other.example:443"; ma=1,  h3=":443" , ,h3-29=":443""#,
      #"h3="[2001:db8::1]:444""#
    )
    XCTAssertEqual(found?.map(\.protocolName), ["h2", "h3", "h3-29", "h3"])
    XCTAssertEqual(found?.map(\.host), ["other.example", nil, nil, "2001:db8::1"])
    XCTAssertEqual(found?.map(\.port), [443, 443, 443, 444])
    XCTAssertEqual(found?.map(\.maximumAge), [1, 86_400, 86_400, 86_400].map { .seconds($0) })
  }

  func testPercentEncodedNames() {
    XCTAssertEqual(self.alternatives(#"w%3Dx%3Ay#z=":1""#)?.first?.protocolName, "w=x:y#z")
    XCTAssertEqual(self.alternatives(#"x%25y=":1""#)?.first?.protocolName, "x%y")
    // Half an escape names nothing, but is a token.
    XCTAssertNil(self.alternatives(#"h3%=":1""#))
    XCTAssertEqual(self.alternatives(#"h3%4=":1", h3=":2""#)?.map(\.port), [2])
  }

  func testClear() {
    XCTAssertEqual(AltSvcField(["clear"]), .clear)
    // It is case-sensitive, and stands alone.
    for values in [["Clear"], ["clear", #"h3=":1""#], ["clear, clear"], [#"clear, h3=":1""#]] {
      XCTAssertNil(AltSvcField(values), "\(values)")
    }
  }

  func testUnusableAlternativesAreLeftOut() {
    for bad in [
      #"h3=":0""#, #"h3=":65536""#, #"h3=":123456""#, #"h3="host""#, #"h3=":""#, #"h3="a b:1""#,
      #"h3="[::1:1""#,
      #"h3="[host]:1""#, #"h3="::1:1""#, #"h3=":1"; ma=x"#, #"h3=":1"; ma=-1"#, #"h3=":1"; ma="""#,
    ] {
      XCTAssertNil(AltSvcField([bad]), bad)
      XCTAssertEqual(self.alternatives(bad + #", h3=":7""#)?.map(\.port), [7], bad)
    }
  }

  func testBrokenSyntaxChangesNothing() {
    for bad in [
      "", ",", "h3", "h3=", "h3=:443", #"h3=":443"#, #"h3=":443" x"#, #"h3=":443"; ma"#, #"h3=":443"; ma="#,
      #"h3 =":443""#, #"=":443""#, #"h3=":443"; =1"#, #"h3=":443";"#, #"h3=":443"; ma="1"#,
      #"h3=":443" h3=":1""#,
      "h3=\":4\u{7f}43\"", #"h3=":443\"#,
    ] {
      XCTAssertNil(AltSvcField([bad]), bad)
      XCTAssertNil(AltSvcField([#"h3=":1""#, bad.isEmpty || bad == "," ? "x" : bad]), bad)
    }
  }

  func testLimits() {
    let many = (1...40).map { "h3=\":\($0)\"" }.joined(separator: ",")
    XCTAssertEqual(self.alternatives(many)?.count, AltSvcField.maximumCount)
    XCTAssertNil(AltSvcField([#"h3=":1"; x="# + String(repeating: "a", count: AltSvcField.maximumLength)]))
    XCTAssertNil(AltSvcField(Array(repeating: #"h3=":1""#, count: AltSvcField.maximumLength)))
  }

  func testDamagedValuesDoNotTrap() {
    var random = SeededRandom(seed: 7)
    let good = Array(#"h3=":443"; ma=86400; persist=1, h2="a.b:1", w%3D="[::1]:2";x="q\"""#.utf8)
    for _ in 0..<20_000 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = .random(in: 0 ... .max, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.insert(#"";,=\%[]: 9"#.utf8.randomElement(using: &random)!, at: index)
        }
      }
      if case .alternatives(let found)? = AltSvcField([String(decoding: bytes, as: UTF8.self)]) {
        XCTAssertTrue(found.allSatisfy { (1...65_535).contains($0.port) })
      }
    }
  }
}
