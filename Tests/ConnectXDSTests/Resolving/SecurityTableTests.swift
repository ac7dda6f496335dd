import XCTest

@testable import ConnectXDS

final class SecurityTableTests: XCTestCase {
  private let table = SecurityTable(maximumRetired: 3)

  private func target(_ name: String) throws -> ListenerName {
    try ListenerName(authority: nil, name: name, XDSBootstrap(servers: []))
  }

  private func security(_ number: Int) -> ClusterSecurity { ClusterSecurity(roots: "r\(number)") }

  /// A control plane that has other names for its clusters with each version.
  func testNamesThatChangeForEver() throws {
    let target = try self.target("orders")
    for number in 0..<10 { self.table.set(["c\(number)": self.security(number), "plain": nil], for: target) }
    XCTAssertEqual(self.table.security(of: "c9"), self.security(9))
    for number in 6..<9 { XCTAssertEqual(self.table.security(of: "c\(number)"), self.security(number)) }
    XCTAssertNil(self.table.security(of: "plain"))
    // Its calls must not go on in cleartext.
    XCTAssertEqual(self.table.security(of: "c5"), .refusing)
    XCTAssertTrue(XDSBootstrap(servers: []).certificateProviders[""] == nil)
    // One that is in use again is not forgotten.
    self.table.set(["c6": self.security(6)], for: target)
    for number in 10..<20 { self.table.set(["c6": self.security(6), "c\(number)": nil], for: target) }
    XCTAssertEqual(self.table.security(of: "c6"), self.security(6))
    self.table.remove(target)
    XCTAssertNil(self.table.security(of: "c6"))
    XCTAssertNil(self.table.security(of: "c5"))
  }

  func testTargetsShareClusters() throws {
    let (one, two) = (try self.target("one"), try self.target("two"))
    for target in [one, two] { self.table.set(["a": self.security(1)], for: target) }
    self.table.set(["a": self.security(2)], for: one)
    XCTAssertEqual(self.table.security(of: "a"), self.security(2))
    self.table.remove(one)
    XCTAssertEqual(self.table.security(of: "a"), self.security(2))
    self.table.set([:], for: two)
    XCTAssertEqual(self.table.security(of: "a"), self.security(2), "calls may still run")
    self.table.remove(two)
    XCTAssertNil(self.table.security(of: "a"))
  }
}
