internal import XCTest

@testable internal import ConnectXDS

final class ClusterSecurityDecoderTests: XCTestCase {
  private let type = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
  private let system = "validation_context { system_root_certs {} }"
  private let roots = "validation_context { ca_certificate_provider_instance { instance_name: 'roots' } }"

  private func text(socket: String) -> String {
    "name: 'c' type: EDS eds_cluster_config { eds_config { ads {} } } transport_socket { \(socket) }"
  }

  private func text(common: String) -> String {
    let context = ResourceText.any(self.type, "common_tls_context { \(common) }")
    return self.text(socket: "typed_config { \(context) }")
  }

  private func security(_ common: String) throws -> ClusterSecurity? {
    try ResourceText.cluster(self.text(common: common))?.security
  }

  /// - Parameter problems: Behind the path of the common context.
  private func check(_ common: String, _ problems: [String], line: UInt = #line) throws {
    let path = "transport_socket.typed_config.value[\(self.type)].common_tls_context"
    XCTAssertEqual(
      try ResourceText.problems(self.text(common: common), as: .cluster),
      problems.map { path + $0 },
      line: line
    )
  }

  // MARK: - Sockets

  func testSockets() throws {
    let cases = [
      ("", ": field not present"),
      ("typed_config {}", ".type_url: field not present"),
      ("typed_config { type_url: 'a/b.C' }", ".value[b.C].type_url: unsupported transport socket type"),
      (
        "typed_config { type_url: 'a/\(self.type)' value: '\\377' }",
        ".value[\(self.type)]: could not parse UpstreamTlsContext"
      ),
      (
        "typed_config { type_url: 'a/\(self.type)' }",
        ".value[\(self.type)].common_tls_context: no CA certs configured"
      ),
    ]
    for (text, problem) in cases {
      XCTAssertEqual(
        try ResourceText.problems(self.text(socket: text), as: .cluster),
        ["transport_socket.typed_config\(problem)"]
      )
    }
  }

  // MARK: - Roots

  func testRoots() throws {
    XCTAssertEqual(try self.security(self.roots), ClusterSecurity(roots: "roots"))
    XCTAssertEqual(try self.security(self.system), ClusterSecurity())
    let old = "validation_context_certificate_provider_instance { instance_name: 'other' }"
    func combined(_ fields: String) -> String { "combined_validation_context { \(fields) }" }
    let own = "default_validation_context { ca_certificate_provider_instance { instance_name: 'roots' } }"
    XCTAssertEqual(try self.security(combined(own)), ClusterSecurity(roots: "roots"))
    XCTAssertEqual(try self.security(combined("\(own) \(old)")), ClusterSecurity(roots: "roots"))
    XCTAssertEqual(
      try self.security(combined("default_validation_context { system_root_certs {} } \(old)")),
      ClusterSecurity(roots: "other")
    )
    XCTAssertEqual(try self.security(combined(old)), ClusterSecurity(roots: "other"))
  }

  func testRootsThatAreRefused() throws {
    let none = ": no CA certs configured"
    try self.check("", [none])
    try self.check("validation_context {}", [none])
    try self.check("combined_validation_context {}", [none])
    try self.check(
      "validation_context_sds_secret_config {}",
      [".validation_context_sds_secret_config: feature unsupported", none]
    )
    let unrecognized = "instance_name: unrecognized certificate provider instance name"
    try self.check(
      "validation_context { ca_certificate_provider_instance { instance_name: 'x' } }",
      [".validation_context.ca_certificate_provider_instance.\(unrecognized): x"]
    )
    try self.check(
      """
      combined_validation_context { validation_context_certificate_provider_instance { instance_name: 'x' } }
      """,
      [
        ".combined_validation_context.validation_context_certificate_provider_instance"
          + ".\(unrecognized): x"
      ]
    )
  }

  func testFeaturesThatAreRefused() throws {
    for (field, name) in [
      ("verify_certificate_spki: 'a'", "verify_certificate_spki"),
      ("verify_certificate_hash: 'a'", "verify_certificate_hash"),
      ("require_signed_certificate_timestamp { value: true }", "require_signed_certificate_timestamp"),
      ("crl {}", "crl"), ("custom_validator_config {}", "custom_validator_config"),
    ] {
      try self.check(
        "validation_context { system_root_certs {} \(field) }",
        [".validation_context.\(name): feature unsupported"]
      )
      try self.check(
        "combined_validation_context { default_validation_context { system_root_certs {} \(field) } }",
        [".combined_validation_context.default_validation_context.\(name): feature unsupported"]
      )
    }
    for name in ["tls_params", "custom_handshaker", "tls_certificates", "tls_certificate_sds_secret_configs"]
    {
      try self.check("\(self.system) \(name) {}", [".\(name): feature unsupported"])
    }
  }

  // MARK: - Names

  func testAcceptedNames() throws {
    let names = """
      match_subject_alt_names { exact: 'a' } match_subject_alt_names { prefix: 'b' ignore_case: true }
      match_subject_alt_names { suffix: 'c' } match_subject_alt_names { contains: 'd' }
      match_subject_alt_names { safe_regex { regex: 'e+' } }
      """
    XCTAssertEqual(
      try self.security("validation_context { system_root_certs {} \(names) }")?.acceptedNames,
      [
        .init(rule: .exact("a")), .init(rule: .prefix("b"), ignoresCase: true), .init(rule: .suffix("c")),
        .init(rule: .contains("d")), .init(rule: .regex("e+")),
      ]
    )
    let problem = try XCTUnwrap(RegexSyntax.problem(of: "("))
    try self.check(
      """
      validation_context {
        system_root_certs {}
        match_subject_alt_names {} match_subject_alt_names { safe_regex { regex: '(' } }
        match_subject_alt_names { safe_regex { regex: 'a' } ignore_case: true }
      }
      """,
      [
        ".validation_context.match_subject_alt_names[0]: invalid string matcher",
        ".validation_context.match_subject_alt_names[1]: \(problem)",
        ".validation_context.match_subject_alt_names[2].ignore_case: not supported for regex matcher",
      ]
    )
  }

  // MARK: - Identity

  func testIdentity() throws {
    let current = "tls_certificate_provider_instance { instance_name: 'own' }"
    let old = "tls_certificate_certificate_provider_instance { instance_name: 'other' }"
    XCTAssertEqual(
      try self.security("\(self.roots) \(current)"),
      ClusterSecurity(roots: "roots", identity: "own")
    )
    XCTAssertEqual(try self.security("\(self.system) \(current) \(old)")?.identity, "own")
    XCTAssertEqual(try self.security("\(self.system) \(old)")?.identity, "other")
    for name in ["tls_certificate_provider_instance", "tls_certificate_certificate_provider_instance"] {
      try self.check(
        "\(self.system) \(name) { instance_name: 'x' }",
        [".\(name).instance_name: unrecognized certificate provider instance name: x"]
      )
    }
  }
}
