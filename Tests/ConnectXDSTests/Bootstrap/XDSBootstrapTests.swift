internal import Foundation
internal import XCTest

@testable internal import ConnectXDS

final class XDSBootstrapTests: XCTestCase {
  private static let full = """
    {
      "xds_servers": [
        {
          "server_uri": "dns:///one.example.com:443",
          "channel_creds": [{"type": "google_default"}, {"type": "tls", "config": {
            "certificate_file": "/c.pem", "private_key_file": "/k.pem", "ca_certificate_file": "/ca.pem",
            "refresh_interval": "30s"
          }}, {"type": "insecure"}],
          "server_features": ["xds_v3", "ignore_resource_deletion", "trusted_xds_server", 7]
        },
        {"server_uri": "two:1", "channel_creds": [{"type": "insecure"}]}
      ],
      "node": {
        "id": "me", "cluster": "mine", "locality": {"region": "r", "zone": "z", "sub_zone": "s"},
        "metadata": {"a": [1, true, null], "b": {"c": "d"}}, "unknown": 1
      },
      "certificate_providers": {
        "files": {"plugin_name": "file_watcher", "config": {"ca_certificate_file": "/ca.pem"}},
        "both": {"plugin_name": "file_watcher", "config": {
          "certificate_file": "/c.pem", "private_key_file": "/k.pem", "refresh_interval": "1.5s"
        }}
      },
      "authorities": {
        "a.example.com": {
          "client_listener_resource_name_template": "xdstp://a.example.com/envoy.config.listener.v3.Listener/x/%s",
          "xds_servers": [{"server_uri": "three:1", "channel_creds": [{"type": "insecure"}]}]
        },
        "b": {}
      },
      "client_default_listener_resource_name_template": "listeners/%s",
      "server_listener_resource_name_template": "ignored"
    }
    """

  func testAllOfIt() throws {
    let bootstrap = try XDSBootstrap(parsing: Self.full)
    let identity = XDSBootstrap.ChannelCredentials.Identity(certificates: "/c.pem", key: "/k.pem")
    XCTAssertEqual(
      bootstrap.servers,
      [
        XDSBootstrap.Server(
          uri: "dns:///one.example.com:443",
          credentials: .tls(roots: "/ca.pem", identity: identity, refreshInterval: .seconds(30)),
          ignoresResourceDeletion: true
        ),
        XDSBootstrap.Server(uri: "two:1", credentials: .insecure),
      ]
    )
    XCTAssertEqual(
      bootstrap.node,
      XDSBootstrap.Node(
        id: "me",
        cluster: "mine",
        locality: XDSLocality(region: "r", zone: "z", subZone: "s"),
        metadata: #"{"a":[1,true,null],"b":{"c":"d"}}"#
      )
    )
    XCTAssertEqual(
      bootstrap.certificateProviders,
      [
        "files": .init(roots: "/ca.pem"),
        "both": .init(identity: identity, refreshInterval: .milliseconds(1500)),
      ]
    )
    XCTAssertEqual(
      bootstrap.authorities,
      [
        "a.example.com": .init(
          servers: [.init(uri: "three:1", credentials: .insecure)],
          clientListenerTemplate: "xdstp://a.example.com/envoy.config.listener.v3.Listener/x/%s"
        ),
        "b": .init(),
      ]
    )
    XCTAssertEqual(bootstrap.defaultClientListenerTemplate, "listeners/%s")
  }

  func testLeast() throws {
    let bootstrap = try XDSBootstrap(
      parsing: #"{"xds_servers": [{"server_uri": "s", "channel_creds": [{"type": "tls"}]}]}"#
    )
    XCTAssertEqual(
      bootstrap,
      XDSBootstrap(
        servers: [
          .init(uri: "s", credentials: .tls(roots: nil, identity: nil, refreshInterval: .seconds(600)))
        ]
      )
    )
  }

  func testMistakesWithTheirPlaces() {
    let server = #"{"server_uri": "s", "channel_creds": [{"type": "insecure"}]}"#
    let cases: [(String, [String])] = [
      ("{}", [#""xds_servers" is missing"#]),
      ("[]", ["expected an object"]),
      (#"{"xds_servers": []}"#, ["xds_servers: has no server"]),
      (#"{"xds_servers": 7}"#, ["xds_servers: expected a list, found a number"]),
      (
        #"{"xds_servers": [{"channel_creds": []}, {"server_uri": "", "channel_creds": [{"type": "x"}, {}]}]}"#,
        [
          #"xds_servers[0]: "server_uri" is missing"#,
          "xds_servers[0].channel_creds: none of the types is known",
          "found none", #"xds_servers[1]: "server_uri" is empty"#, #"found "x""#,
          #"xds_servers[1].channel_creds[1]: "type" is missing"#,
        ]
      ),
      (
        #"{"xds_servers": [{"server_uri": "s", "channel_creds": [{"type": "tls", "config": {"private_key_file": "k"}}]}]}"#,
        [#"xds_servers[0].channel_creds[0].config: set both "certificate_file" and "private_key_file""#]
      ),
      (
        #"{"xds_servers": [\#(server)], "node": {"id": 1, "metadata": []}}"#,
        ["node.id: expected a string, found a number", "node.metadata: expected an object"]
      ),
      (
        #"{"xds_servers": [\#(server)], "certificate_providers": {"p": {"plugin_name": "x"}}}"#,
        [#"certificate_providers["p"]: the plug-in "x" is not known: expected "file_watcher""#]
      ),
      (
        #"{"xds_servers": [\#(server)], "certificate_providers": {"p": {"plugin_name": "file_watcher", "config": {}}}}"#,
        [#"certificate_providers["p"].config: set "certificate_file""#]
      ),
      (
        #"{"xds_servers": [\#(server)], "certificate_providers": {"p": {"plugin_name": "file_watcher", "config": {"ca_certificate_file": "c", "refresh_interval": "soon"}}}}"#,
        [#"certificate_providers["p"].config.refresh_interval: expected a duration"#]
      ),
      (
        #"{"xds_servers": [\#(server)], "authorities": {"a": {"client_listener_resource_name_template": "xdstp://b/%s"}}}"#,
        [#"authorities["a"]: "client_listener_resource_name_template" has to begin with "xdstp://a/""#]
      ),
      ("{", ["no JSON: line 1, column 2"]),
    ]
    for (text, parts) in cases {
      XCTAssertThrowsError(try XDSBootstrap(parsing: text, source: "SOURCE"), text) { error in
        let description = "\(error)"
        XCTAssertTrue(description.contains("SOURCE"), description)
        for part in parts { XCTAssertTrue(description.contains(part), "\(part) in: \(description)") }
      }
    }
  }

  func testEnvironment() throws {
    let server = #"{"xds_servers": [{"server_uri": "TEXT", "channel_creds": [{"type": "insecure"}]}]}"#
    let file = FileManager.default.temporaryDirectory.appending(path: "bootstrap-\(UUID().uuidString).json")
    try Data(server.replacingOccurrences(of: "TEXT", with: "FILE").utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }

    let both = ["GRPC_XDS_BOOTSTRAP": file.path, "GRPC_XDS_BOOTSTRAP_CONFIG": server]
    XCTAssertEqual(try XDSBootstrap.ofEnvironment(both).servers.map(\.uri), ["FILE"])
    let text = ["GRPC_XDS_BOOTSTRAP": "", "GRPC_XDS_BOOTSTRAP_CONFIG": server]
    XCTAssertEqual(try XDSBootstrap.ofEnvironment(text).servers.map(\.uri), ["TEXT"])

    let none: [([String: String], [String])] = [
      ([:], ["GRPC_XDS_BOOTSTRAP", "GRPC_XDS_BOOTSTRAP_CONFIG", "set "]),
      (["GRPC_XDS_BOOTSTRAP": "/nowhere/x"], ["/nowhere/x", "GRPC_XDS_BOOTSTRAP names", "cannot be read"]),
      (["GRPC_XDS_BOOTSTRAP_CONFIG": "{}"], ["the variable GRPC_XDS_BOOTSTRAP_CONFIG", "xds_servers"]),
    ]
    for (variables, parts) in none {
      XCTAssertThrowsError(try XDSBootstrap.ofEnvironment(variables)) { error in
        for part in parts { XCTAssertTrue("\(error)".contains(part), "\(part) in: \(error)") }
      }
    }
  }

  func testHosts() throws {
    let hosts = [
      "control:80": "http://control:80",
      "dns:///control:80": "http://control:80",
      "dns:control": "http://control:443",
      "dns://resolver/control:80": "http://control:80",
      "ipv4:127.0.0.1:80": "http://127.0.0.1:80",
      "ipv6:[::1]:80": "http://[::1]:80",
      "http://control:80": "http://control:80",
      "unix:/a/b": "unix:/a/b",
    ]
    for (uri, host) in hosts {
      XCTAssertEqual(try XDSBootstrap.Server(uri: uri, credentials: .insecure).host, host)
    }
    let tls = XDSBootstrap.ChannelCredentials.tls(roots: nil, identity: nil, refreshInterval: .seconds(1))
    XCTAssertEqual(try XDSBootstrap.Server(uri: "dns:///control", credentials: tls).host, "https://control")
    for uri in ["", "dns:///", "a/b", "dns:///a:b:c"] {
      XCTAssertThrowsError(try XDSBootstrap.Server(uri: uri, credentials: .insecure).host, uri) {
        XCTAssertTrue("\($0)".contains("server_uri"), "\($0)")
      }
    }
  }
}
