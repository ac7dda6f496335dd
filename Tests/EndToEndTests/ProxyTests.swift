internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Logging
internal import LoopbackServer
internal import SwiftProtobuf
internal import Synchronization
internal import TestSupport
import XCTest

/// Calls through proxies of others, on real sockets.
final class ProxyTests: XCTestCase {
  private typealias Selection = NIOHTTPClient.Configuration.ProxySelection

  private func withServer(
    _ version: Version = .http2,
    proxy: Selection,
    tls: TestCertificates? = nil,
    networkProtocol: NetworkProtocol = .connect,
    connectTimeout: Duration = .seconds(10),
    _ body: (EmbeddedServer) async throws -> Void
  ) async throws {
    try await EmbeddedServer.run(
      version,
      server: tls.map { .tls($0) } ?? .plaintext,
      configure: { http, config in
        http.proxy = proxy
        http.timeouts.connect = connectTimeout
        http.channel.backoff.initial = .milliseconds(20)
        if let tls { http.tls.trustRoots = .pemBytes(Array(tls.authorityPEM.utf8)) }
        config.networkProtocol = networkProtocol
      },
      body
    )
  }

  private func checkCalls(_ client: ProtocolClient, _ what: String) async throws {
    let response = await client.unary(TestMethods.echo, .with { $0.payload.text = what })
    XCTAssertEqual(response.message?.payload.text, what, "\(response)")
    let stream = await client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 5 })
      .results
      .collect()
    XCTAssertEqual(stream.code, .ok, "\(what): \(stream)")
    XCTAssertEqual(stream.messages.count, 5, what)
  }

  // MARK: - Calls

  func testCalls() async throws {
    let certificates = try await TestCertificates.make()
    let wires: [(version: Version, tls: TestCertificates?, networkProtocol: NetworkProtocol)] = [
      (.http1, nil, .connect), (.http1, certificates, .connect), (.http2, nil, .connect),
      (.http2, certificates, .grpc),
      (.http2, nil, .grpc), (.http1, nil, .grpcWeb),
    ]
    for setting in ForwardProxy.Setting.all {
      try await ForwardProxy.with(setting) { proxy in
        for (version, tls, networkProtocol) in wires {
          let what = "\(setting), \(version.rawValue), \(tls == nil ? "" : "TLS, ")\(networkProtocol)"
          try await self.withServer(
            version,
            proxy: .proxy(proxy.address),
            tls: tls,
            networkProtocol: networkProtocol
          ) { embedded in
            try await self.checkCalls(embedded.client, what)
            XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1, what)
          }
        }
      }
    }
  }

  /// Without TLS, this server sends its settings before the client has sent anything.
  func testCallsToAGRPCServer() async throws {
    for setting in ForwardProxy.Setting.all {
      try await ForwardProxy.with(setting) { proxy in
        for way in [GRPCSetting.plain, .tls, .mutual] {
          try await way.withClient(configure: { http, _ in http.proxy = .proxy(proxy.address) }) { client in
            let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "through" })
            XCTAssertEqual(
              response.message?.payload.text,
              "through",
              "\(setting), \(way.rawValue): \(response)"
            )
          }
        }
      }
    }
  }

  /// A version that is negotiated with TLS in the tunnel.
  func testNegotiation() async throws {
    let certificates = try await TestCertificates.make()
    try await ForwardProxy.with(.init(program: .tinyproxy)) { proxy in
      try await EmbeddedServer.run(
        .http2,
        server: .tls(certificates),
        configure: { http, _ in
          http.version = .automatic
          http.proxy = .proxy(proxy.address)
          http.tls.trustRoots = .pemBytes(Array(certificates.authorityPEM.utf8))
        }
      ) { embedded in
        try await self.checkCalls(embedded.client, "automatic")
        XCTAssertEqual(embedded.server.requests.map(\.version), [.http2, .http2])
      }
    }
  }

  /// The name of the proxy is resolved here, that of the server by the proxy, whatever else could find it.
  func testNames() async throws {
    try await ForwardProxy.with(.init(program: .tinyproxy)) { proxy in
      let named = Proxy.httpConnect(host: "localhost", port: proxy.port, credentials: nil)
      try await EmbeddedServer.run(
        .http2,
        configure: { http, config in
          http.proxy = .proxy(named)
          http.channel.resolver = StaticResolver([Endpoint("127.0.0.1:1")].compactMap { $0 })
          config.host = config.host.replacing("127.0.0.1", with: "localhost")
        }
      ) { try await self.checkCalls($0.client, "localhost") }
    }
    let nowhere = Proxy.socks5(
      host: "proxy.invalid",
      port: 1080,
      credentials: .init(user: "us", password: "secret")
    )
    try await self.withServer(proxy: .proxy(nowhere)) { embedded in
      let text =
        "cannot connect to \(embedded.server.url): the proxy socks5://us:***@proxy.invalid:1080 cannot be found"
      try await embedded.client.expectFailure(
        TestMethods.echo,
        ExpectedError(.unavailable, text),
        "an unknown name"
      )
    }
  }

  /// The certificate has to be the server's, not the proxy's: the socket leads to the proxy.
  func testAddressesInCertificates() async throws {
    let authority = try await TestCertificate.make("root", ["basicConstraints=critical,CA:TRUE"])
    let (proxys, servers) = ("127.0.0.1", "127.0.0.2")
    for setting in ForwardProxy.Setting.Program.allCases {
      try await ForwardProxy.with(.init(program: setting)) { proxy in
        for named in [proxys, servers] {
          let certificate = try await TestCertificate.make("server", names: "IP:\(named)", issuer: authority)
          var server = LoopbackServer.Configuration.tls(TestCertificates().serving(certificate))
          server.address = .ip(servers)
          try await EmbeddedServer.run(
            .http2,
            server: server,
            configure: { http, _ in
              http.proxy = .proxy(proxy.address)
              http.tls.trustRoots = .pemBytes(Array(authority.pem.utf8))
            }
          ) { embedded in
            if named == servers {
              try await self.checkCalls(embedded.client, setting.rawValue)
            } else {
              let expected = ExpectedError(.unavailable, "is not for '127.0.0.2', but for 127.0.0.1")
              try await embedded.client.expectFailure(TestMethods.echo, expected, setting.rawValue)
              XCTAssertEqual(embedded.server.requests.count, 0)
            }
          }
        }
      }
    }
  }

  // MARK: - Which calls

  func testServersWithoutProxy() async throws {
    let proxy = try await ForwardProxy.start(.init(program: .tinyproxy))
    await proxy.kill()
    let dead = proxy.address
    for version in Version.allCases {
      try await self.withServer(version, proxy: .proxy(dead, exceptions: NoProxyList("x, 127.0.0.0/8"))) {
        try await self.checkCalls($0.client, "an exception")
      }
      try await self.withServer(version, proxy: .proxy(dead, exceptions: NoProxyList("127.0.0.1:1"))) {
        let expected = ExpectedError(
          .unavailable,
          "cannot connect to the proxy \(dead) for \($0.server.url) ("
        )
        try await $0.client.expectFailure(TestMethods.echo, expected, "another port")
      }
      try await EmbeddedServer.run(
        version,
        server: .unixSocket(temporarySocketPath()),
        configure: { http, _ in http.proxy = .proxy(dead) }
      ) { try await self.checkCalls($0.client, "a unix socket") }
    }
  }

  func testEnvironment() async throws {
    let server = try await LoopbackServer.start()
    try await ForwardProxy.with(.init(program: .microsocks, credentials: ForwardProxy.Setting.login)) {
      proxy in
      let url = "socks5://us%2der:secret%2e1@127.0.0.1:\(proxy.port)"
      let dead = "http://us:secret@127.0.0.1:1"
      let cases: [(variables: [String: String], output: [String])] = [
        (["grpc_proxy": url, "no_grpc_proxy": ""], ["ok\n"]),
        (["grpc_proxy": dead, "no_grpc_proxy": "localhost,127.0.0.1"], ["ok\n"]),
        (
          ["grpc_proxy": dead, "no_grpc_proxy": ""],
          ["unavailable", "the proxy http://us:***@127.0.0.1:1 for"]
        ),
        (
          ["grpc_proxy": "ftp://x"],
          ["failed_precondition", "the environment variable grpc_proxy", "write http://"]
        ),
      ]
      for (variables, texts) in cases {
        let program = try ChildProcess(
          product: "ServiceProgram",
          arguments: [server.url, TestMethods.echo.path],
          environment: variables
        )
        let status = try await program.exitStatus(within: patience)
        XCTAssertEqual(status, 0, program.errorOutput)
        let output = String(decoding: try await program.readAll(), as: UTF8.self)
        for text in texts { XCTAssertTrue(output.contains(text), "\(variables): \(output)") }
        XCTAssertFalse(output.contains("secret"), output)
      }
    }
    XCTAssertEqual(server.requests.count, 2)
    await server.stop()
  }

  // MARK: - Failures

  func testRefusals() async throws {
    let wrong = Proxy.Credentials(user: "us", password: "secret")
    let login = ForwardProxy.Setting.login
    let cases: [(setting: ForwardProxy.Setting, credentials: Proxy.Credentials?, text: String)] = [
      (.init(program: .tinyproxy, lines: "ConnectPort 1"), nil, "with status 403 (Access violation)"),
      (.init(program: .tinyproxy, credentials: login), nil, "it wants credentials"),
      (.init(program: .tinyproxy, credentials: login), wrong, "it does not accept the credentials"),
      (.init(program: .microsocks, credentials: login), nil, "write socks5://USER:PASSWORD@HOST:PORT"),
      (.init(program: .microsocks, credentials: login), wrong, "it does not accept the credentials"),
    ]
    for (setting, credentials, text) in cases {
      try await ForwardProxy.with(setting) { proxy in
        let address = proxy.address(credentials)
        try await self.withServer(proxy: .proxy(address)) { embedded in
          for expected in [text, "cannot connect to \(embedded.server.url): ", "\(address)"] {
            let error = try await embedded.client.expectFailure(
              TestMethods.echo,
              ExpectedError(.unavailable, expected),
              "\(setting)"
            )
            XCTAssertFalse(String(reflecting: error).contains("secret"), "\(String(describing: error))")
          }
          XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 0, "\(setting)")
        }
      }
    }
  }

  func testServersThatTheProxyCannotReach() async throws {
    let gone = try await LoopbackServer.start()
    await gone.stop()
    let cases: [(program: ForwardProxy.Setting.Program, text: String)] = [
      (.tinyproxy, "with status 500 (Unable to connect)"),
      (.microsocks, "the server refused the proxy's connection"),
    ]
    for (program, text) in cases {
      try await ForwardProxy.with(.init(program: program)) { proxy in
        try await withPlainClient(
          .http2,
          host: gone.url,
          configure: { http, _ in http.proxy = .proxy(proxy.address) }
        ) { client in
          try await client.expectFailure(
            TestMethods.echo,
            ExpectedError(.unavailable, text),
            program.rawValue
          )
        }
      }
    }
  }

  /// A proxy that accepts connections and says nothing.
  func testProxyThatHangs() async throws {
    for program in ForwardProxy.Setting.Program.allCases {
      try await ForwardProxy.with(.init(program: program)) { proxy in
        proxy.freeze()
        try await self.withServer(proxy: .proxy(proxy.address), connectTimeout: .milliseconds(100)) {
          embedded in
          let text =
            "the proxy \(proxy.address) had made no tunnel when connecting timed out after 0.1 seconds"
          let expected = ExpectedError(.unavailable, "cannot connect to \(embedded.server.url): \(text)")
          try await embedded.client.expectFailure(TestMethods.echo, expected, program.rawValue)
          XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 0)
        }
        // The end of the client does not wait for the proxy either.
        try await self.withServer(proxy: .proxy(proxy.address), connectTimeout: .seconds(600)) { embedded in
          let responses = Recorder<ResponseMessage<EchoResponse>>()
          embedded.client.unary(TestMethods.echo, EchoRequest()) { responses.record($0) }
          let httpClient = embedded.httpClient
          try await bounded("the shutdown") { await httpClient.shutdown(within: .milliseconds(50)) }
          let response = try await responses.wait(for: 1)[0]
          ExpectedError(.unavailable, "shut down").check(response.error, program.rawValue)
        }
      }
    }
  }

  /// The calls of its connections fail; later ones work again once the proxy is back.
  func testProxyThatDiesDuringACall() async throws {
    for setting in ForwardProxy.Setting.all {
      for version in Version.allCases {
        let what = "\(setting), \(version.rawValue)"
        let proxy = try await ForwardProxy.start(setting)
        try await self.withServer(version, proxy: .proxy(proxy.address)) { embedded in
          embedded.server.onRaw("/held") { request, responder in
            _ = try await request.body()
            try await responder.sleep(.seconds(60))
          }
          let responses = Recorder<ResponseMessage<EchoResponse>>()
          embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) }
          _ = try await embedded.server.request(to: "/held")
          await proxy.kill()
          let response = try await responses.wait(for: 1)[0]
          ExpectedError(.unavailable).check(response.error, what)
          let expected = ExpectedError(.unavailable, "cannot connect to the proxy \(proxy.address) for")
          try await embedded.client.expectFailure(TestMethods.echo, expected, what)

          let revived = try await ForwardProxy.start(setting, port: proxy.port)
          let options = CallOptions(waitForReady: true)
          let last = await embedded.client.unary(TestMethods.echo, EchoRequest(), options: options)
          XCTAssertEqual(last.code, .ok, "\(what): \(last)")
          await revived.kill()
        }
      }
    }
  }

  // MARK: - Secrets

  func testLogsShowNoPassword() async throws {
    let lines = Recorder<String>()
    let credentials = Proxy.Credentials(user: "us", password: "secret")
    for program in ForwardProxy.Setting.Program.allCases {
      let setting = ForwardProxy.Setting(program: program, credentials: ForwardProxy.Setting.login)
      try await ForwardProxy.with(setting) { proxy in
        let selections: [Selection] = [
          .proxy(proxy.address), .proxy(proxy.address(credentials)),
          .proxy(.httpConnect(host: "127.0.0.1", port: 1, credentials: credentials)),
        ]
        for selection in selections {
          let server = try await LoopbackServer.start()
          let logger = Logger(label: "test") { _ in LineHandler(lines: lines) }
          let httpClient = NIOHTTPClient(configuration: .init(proxy: selection), logger: logger)
          let client = ProtocolClient(httpClient: httpClient, config: .forTests(host: server.url))
          let response = await client.unary(TestMethods.echo, EchoRequest())
          lines.record(String(reflecting: response) + String(reflecting: selection))
          try await shutDown(httpClient)
          await server.stop()
        }
      }
    }
    XCTAssertTrue(lines.values.contains { $0.contains("could not connect") }, "\(lines.values)")
    for line in lines.values { XCTAssertFalse(line.contains("secret"), line) }
  }
}

/// Keeps everything that is logged as text.
private struct LineHandler: LogHandler {
  let lines: Recorder<String>
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    self.lines.record("\(event.message) \(event.metadata ?? [:]) \(self.metadata)")
  }
}
