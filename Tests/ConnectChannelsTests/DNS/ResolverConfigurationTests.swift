import XCTest

@testable import ConnectChannels

final class ResolverConfigurationTests: XCTestCase {
  func testFile() {
    let text = """
      # written by hand
      domain other.example
      nameserver 10.0.0.2   ; the first
      nameserver nonsense
      nameserver fe80::1%eth0
      search svc.example example. . bad..name
      options ndots:5 timeout:1 attempts:9 rotate use-vc unknown:3 edns0
      nameserver 10.0.0.3
      nameserver 10.0.0.4
      """
    for text in [text, text.split(separator: "\n").joined(separator: "\r\n")] {
      XCTAssertEqual(
        ResolverConfiguration(parsing: text),
        ResolverConfiguration(
          servers: ["10.0.0.2", "fe80::1%eth0", "10.0.0.3"].map { .ip(IPAddress($0)!, port: 53) },
          searchDomains: ["svc.example", "example."],
          dots: 5,
          timeout: .seconds(1),
          attempts: 5,
          rotatesServers: true,
          usesTCP: true
        )
      )
    }
  }

  func testDefaults() {
    let localhost = ResolverConfiguration(servers: [.ip(.loopbackIPv4, port: 53)])
    XCTAssertEqual(ResolverConfiguration(parsing: ""), localhost)
    XCTAssertEqual(ResolverConfiguration(parsing: "options timeout:x ndots: attempts:0 rotate:1").attempts, 1)
    XCTAssertEqual(ResolverConfiguration(parsing: "options ndots:99 timeout:99").dots, 15)
    XCTAssertEqual(ResolverConfiguration(parsing: "options ndots:99 timeout:99").timeout, .seconds(30))
    XCTAssertEqual(
      ResolverConfiguration(parsing: "", hostname: "me.corp.example").searchDomains,
      ["corp.example"]
    )
    XCTAssertEqual(ResolverConfiguration(parsing: "search", hostname: "me.corp.example").searchDomains, [])
    XCTAssertEqual(ResolverConfiguration(parsing: "search a\ndomain b").searchDomains, ["b"])
  }

  func testCandidates() {
    let cases: [(dots: Int, search: [String], name: String, names: [String])] = [
      (1, ["x.y", "z"], "host", ["host.x.y", "host.z", "host"]),
      (1, ["x.y", "z"], "a.b", ["a.b", "a.b.x.y", "a.b.z"]),
      (1, ["x.y", "z"], "host.", ["host"]),
      (5, ["ns.svc", "svc"], "a.b.c", ["a.b.c.ns.svc", "a.b.c.svc", "a.b.c"]),
      (0, ["z"], "host", ["host", "host.z"]),
      (1, [], "host", ["host"]),
      (1, ["z", "Z."], "host", ["host.z", "host"]),
      (1, ["z"], "", []),
      (1, ["z"], "a..b", []),
      (
        1, [String(repeating: "a.", count: 120) + "a"], String(repeating: "b", count: 40),
        [String(repeating: "b", count: 40)]
      ),
    ]
    for (dots, search, name, names) in cases {
      let configuration = ResolverConfiguration(servers: [], searchDomains: search, dots: dots)
      XCTAssertEqual(configuration.candidates(for: name).map(\.description), names, name)
    }
  }

  func testHostsFile() {
    let hosts = HostsFile(
      parsing: """
        127.0.0.1 localhost   # the machine
        ::1\tlocalhost ip6-localhost
        10.0.0.1 One.example one
        10.0.0.2 one.example
        10.0.0.1 one.example
        nonsense one.example
        10.0.0.9
        # 10.0.0.8 two
        """
    )
    XCTAssertEqual(hosts.addresses(of: "ONE.example.").map(\.description), ["10.0.0.1", "10.0.0.2"])
    XCTAssertEqual(hosts.addresses(of: "localhost").map(\.description), ["127.0.0.1", "::1"])
    XCTAssertEqual(hosts.addresses(of: "two"), [])
    XCTAssertEqual(hosts.knownAddresses(of: "192.0.2.1")?.count, 1)
    XCTAssertEqual(HostsFile().knownAddresses(of: "x.localhost.")?.map(\.description), ["::1", "127.0.0.1"])
    XCTAssertNil(hosts.knownAddresses(of: "notlocalhost"))
  }
}
