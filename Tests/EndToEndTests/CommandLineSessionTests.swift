internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import TestSupport
internal import XCTest

/// Sessions with `connectrpc`, as they are in the folder `Sessions`: each command line, and what it printed. They are recorded
/// again by a run with `CONNECT_SESSIONS=record`.
final class CommandLineSessionTests: XCTestCase {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Sessions")
  private static let isRecording = ProcessInfo.processInfo.environment["CONNECT_SESSIONS"] == "record"

  /// Proxies in front of the server with reflection.
  private func proxy(_ script: PythonServer.Script) async throws -> PythonServer {
    let port = try await PythonServer.shared(.reflection).port("both")
    return try await PythonServer.start(script, arguments: ["127.0.0.1:\(port)"])
  }

  /// Runs a session's commands one after the other, and compares.
  ///
  /// - Parameters:
  ///   - variables: More of the environment.
  ///   - ports: More ports, with the names that stand in their place.
  private func check(
    _ name: String,
    port: Int,
    variables: [String: String] = [:],
    ports: [String: String] = [:]
  ) async throws {
    let file = Self.folder.appending(path: "\(name).txt")
    let recorded = try String(contentsOf: file, encoding: .utf8)
    let schema = try await self.descriptorSet()
    let programs = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path()
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    var played = ""
    for line in recorded.split(separator: "\n") where line.hasPrefix("$ ") {
      // As in a terminal: both outputs in one, and the status of the first program in a pipe.
      let process = try ChildProcess(
        URL(filePath: "/bin/bash"),
        arguments: ["-o", "pipefail", "-c", "exec 2>&1; \(line.dropFirst(2))"],
        environment: [
          "NO_COLOR": "1", "URL": "http://127.0.0.1:\(port)", "SCHEMA": schema, "PATH": "\(programs):\(path)",
        ].merging(variables) { $1 }
      )
      try process.closeInput()
      let text = String(decoding: try await process.readAll(), as: UTF8.self)
      let status = try await process.exitStatus(within: .seconds(60))
      let named = ports.reduce(text) { $0.replacing(":\($1.key)", with: ":\($1.value)") }
      let shown = named.replacing(":\(port)", with: ":PORT").replacing(" \(port)", with: " PORT")
        .replacing(/[0-9]+\.[0-9]{3} ms/, with: "N ms")
      played += "\(line)\n\(shown)\(status == 0 ? "" : "[\(status)]\n")\n"
    }
    if Self.isRecording { try played.write(to: file, atomically: true, encoding: .utf8) }
    XCTAssertGreaterThan(played.count, 500)
    // By commands, so that a difference is easy to find.
    let (expected, found) = (recorded.components(separatedBy: "\n$ "), played.components(separatedBy: "\n$ "))
    XCTAssertEqual(expected.count, found.count)
    for (expected, found) in zip(expected, found) { XCTAssertEqual(found, expected) }
  }

  func testGRPCIO() async throws {
    try await self.check("grpcio", port: PythonServer.shared(.reflection).port("both"))
  }

  func testHypercorn() async throws {
    try await self.check("hypercorn", port: PythonServer.shared(.connect).port("http"))
  }

  func testNginx() async throws {
    let nginx = try await self.proxy(.nginx)
    try await self.check("nginx", port: nginx.port("http"))
    await nginx.stop()
  }

  /// Calls that a control plane leads to the server, with one that is down, and with resources that cannot be used.
  func testControlPlane() async throws {
    let port = try await PythonServer.shared(.reflection).port("both")
    let plane = try await PythonServer.start(.controlPlane)
    let address = try await plane.command(["do": "start", "plane": "main"]).address ?? ""
    try await self.serve(port, from: plane)
    func bootstrap(_ address: String) -> String {
      """
      {"node": {"id": "shop-7"}, "xds_servers": [{"server_uri": "\(address)", "channel_creds": [{"type": "insecure"}]}]}
      """
    }
    try await self.check(
      "xds",
      port: port,
      variables: [
        "GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": bootstrap(address),
        "DOWN": bootstrap("127.0.0.1:1"),
      ],
      ports: [String(address.split(separator: ":").last ?? ""): "CONTROL"]
    )
    await plane.stop()
  }

  /// Listeners `orders`, which leads to the server, and `broken`, which leads to a cluster of a type that is not supported.
  private func serve(_ port: Int, from plane: PythonServer) async throws {
    func put(_ type: String, _ resource: [String: any Sendable]) async throws {
      try await plane.command(["do": "put", "plane": "main", "type": type, "resources": [resource]])
    }
    let envoy = "type.googleapis.com/envoy.extensions.filters"
    let ads: [String: any Sendable] = ["ads": [String: String](), "resource_api_version": "V3"]
    let socket: [String: any Sendable] = ["address": "127.0.0.1", "port_value": port]
    let endpoint = ["endpoint": ["address": ["socket_address": socket]]]
    let locality: [String: any Sendable] = [
      "locality": ["zone": "a"], "load_balancing_weight": 1, "lb_endpoints": [endpoint],
    ]
    try await put("endpoints", ["cluster_name": "orders", "endpoints": [locality]])
    try await put("cluster", ["name": "orders", "type": "EDS", "eds_cluster_config": ["eds_config": ads]])
    try await put("cluster", ["name": "broken", "type": "STATIC"])
    for name in ["orders", "broken"] {
      let route: [String: any Sendable] = ["match": ["prefix": ""], "route": ["cluster": name]]
      let host: [String: any Sendable] = ["name": "all", "domains": ["*"], "routes": [route]]
      let router =
        ["name": "router", "typed_config": ["@type": "\(envoy).http.router.v3.Router"]]
        as [String: any Sendable]
      let manager: [String: any Sendable] = [
        "@type": "\(envoy).network.http_connection_manager.v3.HttpConnectionManager",
        "route_config": ["virtual_hosts": [host]], "http_filters": [router],
      ]
      try await put("listener", ["name": name, "api_listener": ["api_listener": manager]])
    }
  }

  // As in requirements.txt: elsewhere there is no Envoy to install.
  #if arch(x86_64) || arch(arm64)
  func testEnvoy() async throws {
    let envoy = try await self.proxy(.envoy)
    try await self.check("envoy", port: envoy.port("http"))
    await envoy.stop()
  }
  #endif

  /// Requests are typed one by one, and each is answered before the next, also through proxies.
  func testTypedConversations() async throws {
    let nginx = try await self.proxy(.nginx)
    var ports = [
      try await PythonServer.shared(.connect).port("http"), try nginx.port("http"),
      try await PythonServer.shared(.reflection).port("both"),
    ]
    #if arch(x86_64) || arch(arm64)
    let envoy = try await self.proxy(.envoy)
    ports.append(try envoy.port("http"))
    #endif
    let schema = try await self.descriptorSet()
    for port in ports {
      let terminal = try Terminal()
      let url = "http://127.0.0.1:\(port)/connect.test.v1.TestService/Converse"
      let process = try terminal.run("connectrpc", ["call", url, "--no-pretty", "--schema", schema])
      for text in ["first", "second"] {
        try terminal.type("{\"payload\": {\"text\": \"\(text)\"}}\n")
        try await terminal.waitFor("\"text\":\"\(text)\"")
      }
      // The end of the input, Ctrl-D.
      try terminal.type("\u{4}")
      process.waitUntilExit()
      XCTAssertEqual(process.terminationStatus, 0, terminal.text)
    }
    await nginx.stop()
    #if arch(x86_64) || arch(arm64)
    await envoy.stop()
    #endif
  }
}
