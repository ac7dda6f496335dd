internal import ConnectChannels
internal import XCTest

@testable internal import ConnectXDS

final class EndpointsDecoderTests: XCTestCase {
  private func check(_ text: String, _ problems: [String], line: UInt = #line) throws {
    XCTAssertEqual(try ResourceText.problems(text, as: .endpoints), problems, line: line)
  }

  private func address(_ address: String, _ port: Int = 1) -> String {
    "address { socket_address { address: '\(address)' port_value: \(port) } }"
  }

  private func endpoint(_ address: String, _ more: String = "") -> String {
    "lb_endpoints { endpoint { \(self.address(address)) } \(more) }"
  }

  private func locality(_ zone: String, weight: UInt32 = 1, priority: UInt32 = 0, _ endpoints: String = "")
    -> String
  {
    """
    endpoints {
      locality { zone: '\(zone)' } load_balancing_weight { value: \(weight) } priority: \(priority) \(endpoints)
    }
    """
  }

  private func endpoints(_ text: String) throws -> [Endpoint]? {
    try ResourceText.endpoints(self.locality("a", text))?.priorities.first?.first?.endpoints
  }

  private func plain(_ text: String, weight: UInt32 = 1) throws -> Endpoint {
    var endpoint = try XCTUnwrap(Endpoint(text))
    endpoint.weight = weight
    return endpoint
  }

  // MARK: - Localities

  func testPriorities() throws {
    let text = [
      self.locality("c", weight: 3, priority: 1), self.locality("b", weight: 2, self.endpoint("10.0.0.1")),
      self.locality("a"), self.locality("left out", weight: 0, priority: 7),
      "endpoints { priority: 9 }",
    ].joined(separator: " ")
    let resource = try ResourceText.endpoints(text)
    XCTAssertEqual(resource?.priorities.map { $0.map(\.name.zone) }, [["a", "b"], ["c"]])
    XCTAssertEqual(resource?.priorities.map { $0.map(\.weight) }, [[1, 2], [3]])
    XCTAssertEqual(resource?.priorities[0][1].endpoints, [try self.plain("10.0.0.1:1")])
    XCTAssertEqual(resource?.drops, [])
  }

  func testNameOfALocality() throws {
    let text = """
      endpoints {
        locality { region: 'r' zone: 'z' sub_zone: 's' } load_balancing_weight { value: 1 }
      }
      """
    XCTAssertEqual(
      try ResourceText.endpoints(text)?.priorities.first?.first?.name,
      XDSLocality(region: "r", zone: "z", subZone: "s")
    )
  }

  func testLocalitiesThatAreRefused() throws {
    try self.check(
      "endpoints { load_balancing_weight { value: 1 } }",
      ["endpoints[0].locality: field not present"]
    )
    for priority: UInt32 in [1, 4_294_967_295] {
      try self.check(
        self.locality("a", priority: priority),
        ["endpoints[0].priority: priority \(priority) >= number of localities (1)"]
      )
    }
    try self.check(
      self.locality("a", priority: 1) + self.locality("b", priority: 1),
      ["endpoints: priority 0 empty"]
    )
    try self.check(
      self.locality("a") + self.locality("b") + self.locality("a", priority: 2),
      ["endpoints: priority 1 empty"]
    )
    try self.check(
      self.locality("a") + self.locality("a", weight: 2),
      ["endpoints[1]: duplicate locality {region=\"\", zone=\"a\", sub_zone=\"\"} found in priority 0"]
    )
    XCTAssertEqual(
      try ResourceText.endpoints(self.locality("a") + self.locality("a", priority: 1))?.priorities.count,
      2
    )
    try self.check(
      self.locality("a", weight: 4_294_967_295) + self.locality("b"),
      ["endpoints: sum of locality weights for priority 0 exceeds uint32 max"]
    )
  }

  // MARK: - Endpoints

  func testHealth() throws {
    for (health, isUsed) in [
      ("UNKNOWN", true), ("HEALTHY", true), ("UNHEALTHY", false), ("DRAINING", false), ("TIMEOUT", false),
      ("DEGRADED", false), ("17", false),
    ] {
      let found = try self.endpoints(self.endpoint("10.0.0.1", "health_status: \(health)"))
      XCTAssertEqual(found?.count, isUsed ? 1 : 0, health)
    }
  }

  func testWeights() throws {
    XCTAssertEqual(
      try self.endpoints(self.endpoint("10.0.0.1", "load_balancing_weight { value: 7 }")),
      [try self.plain("10.0.0.1:1", weight: 7)]
    )
    try self.check(
      self.locality("a", self.endpoint("10.0.0.1", "load_balancing_weight {}")),
      [
        "endpoints[0].lb_endpoints[0].load_balancing_weight: must be greater than 0"
        // Without the locality.
      ]
    )
    try self.check(
      self.locality(
        "a",
        self.endpoint("10.0.0.1", "load_balancing_weight { value: 4294967295 }") + self.endpoint("10.0.0.2")
      ),
      ["endpoints[0]: sum of endpoint weights exceeds uint32 max"]
    )
  }

  func testAddresses() throws {
    XCTAssertEqual(try self.endpoints(self.endpoint("::1")), [try self.plain("[::1]:1")])
    let several = """
      lb_endpoints {
        endpoint {
          \(self.address("10.0.0.1", 65_535))
          additional_addresses { \(self.address("fe80::1", 0)) }
        }
      }
      """
    XCTAssertEqual(try self.endpoints(several), [try self.plain("10.0.0.1:65535,[fe80::1]:0")])
  }

  func testAddressesThatAreRefused() throws {
    let invalid = "failed to parse address \"example.com\": it has to be an IP address"
    let cases = [
      ("", ": field not present"),
      ("endpoint {}", ".address: field not present"),
      ("endpoint { address {} }", ".address.socket_address: field not present"),
      (
        "endpoint { \(self.address("10.0.0.1", 65_536)) }", ".address.socket_address.port_value: invalid port"
      ),
      ("endpoint { \(self.address("example.com")) }", ".address.socket_address: \(invalid)"),
      (
        "endpoint { \(self.address("10.0.0.1")) additional_addresses { \(self.address("example.com")) } }",
        ".additional_addresses[0].address.socket_address: \(invalid)"
      ),
      (
        "endpoint { \(self.address("10.0.0.1")) additional_addresses {} }",
        ".additional_addresses[0].address: field not present"
      ),
    ]
    for (text, problem) in cases {
      try self.check(
        self.locality("a", "lb_endpoints { \(text) }"),
        ["endpoints[0].lb_endpoints[0].endpoint\(problem)"]
      )
    }
  }

  func testDuplicateAddresses() throws {
    let one = self.endpoint("10.0.0.1")
    let problem = "duplicate endpoint address \"10.0.0.1:1\""
    try self.check(self.locality("a", one + one), ["endpoints[0].lb_endpoints[1]: \(problem)"])
    try self.check(
      self.locality("a", one) + self.locality("b", priority: 0, one),
      ["endpoints[1].lb_endpoints[0]: \(problem)"]
    )
    // Those that are not healthy are not looked at.
    let ill = self.endpoint("10.0.0.1", "health_status: UNHEALTHY")
    XCTAssertEqual(try self.endpoints(one + ill)?.count, 1)
  }

  // MARK: - Drops

  func testDrops() throws {
    let text = """
      policy {
        drop_overloads { category: 'a' drop_percentage { numerator: 5 } }
        drop_overloads { category: 'b' drop_percentage { numerator: 5 denominator: TEN_THOUSAND } }
        drop_overloads { category: 'c' drop_percentage { numerator: 5 denominator: MILLION } }
        drop_overloads { category: 'd' drop_percentage { numerator: 4294967295 } }
      }
      """
    XCTAssertEqual(
      try ResourceText.endpoints(text)?.drops,
      [
        .init(category: "a", perMillion: 50_000), .init(category: "b", perMillion: 500),
        .init(category: "c", perMillion: 5), .init(category: "d", perMillion: 1_000_000),
      ]
    )
    try self.check(
      """
      policy {
        drop_overloads { drop_percentage {} } drop_overloads { category: 'a' }
        drop_overloads { category: 'b' drop_percentage { denominator: 3 } }
      }
      """,
      [
        "policy.drop_overloads[0].category: empty drop category name",
        "policy.drop_overloads[1].drop_percentage: field not present",
        "policy.drop_overloads[2].drop_percentage.denominator: unknown denominator type",
      ]
    )
  }
}
