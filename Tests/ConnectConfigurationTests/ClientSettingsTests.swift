import Connect
import ConnectChannels
import ConnectConfiguration
import ConnectNIO
import XCTest

/// What settings change, and what is said of those that cannot be used. Without a provider: the values are as it found them.
final class ClientSettingsTests: XCTestCase {
  private func settings(
    _ values: [String: SettingValue],
    listing names: [SettingNames] = [],
    defaults: ClientSettings = ClientSettings(client: ProtocolClientConfig(host: "https://default.test"))
  ) throws(ConnectError) -> ClientSettings {
    try ClientSettings(values: values, under: ["orders", "client"], listing: names, defaults: defaults)
  }

  private func problem(
    _ values: [String: SettingValue],
    listing names: [SettingNames] = [],
    defaults: ClientSettings = ClientSettings(client: ProtocolClientConfig(host: "https://default.test"))
  ) -> String {
    do throws(ConnectError) {
      _ = try self.settings(values, listing: names, defaults: defaults)
      return "no error"
    } catch {
      XCTAssertEqual(error.code, .failedPrecondition)
      return error.message ?? ""
    }
  }

  func testWithoutSettingsAllIsAsInTheDefaults() throws {
    var defaults = ClientSettings(
      client: ProtocolClientConfig(host: "https://default.test", timeout: .seconds(3))
    )
    defaults.transport.eventLoops = 2
    defaults.transport.http2.keepalive = .init(interval: .seconds(20))
    let settings = try self.settings([:], defaults: defaults)
    XCTAssertEqual(settings.client.host, "https://default.test")
    XCTAssertEqual(settings.client.timeout, .seconds(3))
    XCTAssertEqual(settings.transport.eventLoops, 2)
    XCTAssertEqual(settings.transport.http2.keepalive, .init(interval: .seconds(20)))
    XCTAssertNil(settings.transport.channel.serviceConfig)
    XCTAssertNil(settings.transport.tls.clientCertificate)
  }

  func testCalls() throws {
    let settings = try self.settings([
      "host": .text("http://127.0.0.1:8080/base"), "protocol": .text("grpc-web"), "codec": .text("json"),
      "timeout": .text("1.5s"), "deadlineMargin": .text("20ms"), "waitForReady": .flag(true),
      "get.maximumBytes": .integer(2048), "compression.requests": .text("gzip"),
      "compression.minimumBytes": .integer(10), "compression.responses": .list(["deflate", "gzip"]),
      "limits.receivedMessageBytes": .integer(1 << 20), "limits.sentMessageBytes": .integer(1 << 10),
    ])
    let client = settings.client
    XCTAssertEqual(client.host, "http://127.0.0.1:8080/base")
    XCTAssertEqual(client.networkProtocol, .grpcWeb)
    XCTAssertEqual(client.codec.name, "json")
    XCTAssertEqual(client.timeout, .milliseconds(1500))
    XCTAssertEqual(client.deadlineMargin, .milliseconds(20))
    XCTAssertTrue(client.waitForReady)
    XCTAssertEqual(client.unaryGET, .enabledForLimitedPayloadSizes(maxBytes: 2048))
    XCTAssertEqual(client.compression.requests?.name, "gzip")
    XCTAssertEqual(client.compression.minimumRequestBytes, 10)
    XCTAssertEqual(client.compression.responses.map(\.name), ["deflate", "gzip"])
    XCTAssertEqual(client.limits.maximumReceivedMessageSize, 1 << 20)
    XCTAssertEqual(client.limits.maximumSentMessageSize, 1 << 10)
  }

  func testTransport() throws {
    let settings = try self.settings([
      "http.version": .text("2"), "connections.http1": .integer(7),
      "connections.http2": .integer(2),
      "connections.waitingCalls": .integer(0), "timeouts.connect": .text("5s"), "timeouts.idle": .text("2m"),
      "timeouts.unacknowledged": .text("none"), "keepalive.interval": .text("30s"),
      "keepalive.timeout": .text("5s"), "keepalive.withoutCalls": .flag(true), "eventLoops": .integer(2),
      "proxy.url": .text("http://ada:secret@proxy.test:3128"), "tls.trustRoots": .text("/ca.pem"),
      "tls.certificateChain": .text("/chain.pem"), "tls.privateKey": .text("/key.pem"),
      "tls.serverName": .text("api.test"), "tls.minimumVersion": .text("1.3"),
      "tls.fileCheckInterval": .text("1h"), "balancing.policy": .text("round_robin"),
      "balancing.detectsOutliers": .flag(true), "health.service": .text("*"),
      "channel.idleTimeout": .text("10m"), "channel.maximumConnectionAge": .text("1h"),
      "channel.zone": .text("eu-1a"),
    ])
    let transport = settings.transport
    XCTAssertEqual(transport.version, .http2Only)
    XCTAssertEqual(
      transport.limits,
      .init(http1ConnectionsPerAddress: 7, http2ConnectionsPerAddress: 2, waitingCalls: 0)
    )
    XCTAssertEqual(
      transport.timeouts,
      .init(connect: .seconds(5), idle: .seconds(120), unacknowledged: nil)
    )
    XCTAssertEqual(
      transport.http2.keepalive,
      .init(interval: .seconds(30), timeout: .seconds(5), pingsWithoutStreams: true)
    )
    XCTAssertEqual(transport.eventLoops, 2)
    XCTAssertEqual(transport.proxy, .proxy(try Proxy("http://ada:secret@proxy.test:3128")))
    XCTAssertEqual(transport.tls.trustRoots, .pemFile("/ca.pem"))
    XCTAssertEqual(transport.tls.clientCertificate, .pemFiles(chain: "/chain.pem", privateKey: "/key.pem"))
    XCTAssertEqual(transport.tls.serverName, "api.test")
    XCTAssertEqual(transport.tls.minimumVersion, .tls13)
    XCTAssertEqual(transport.tls.fileCheckInterval, .seconds(3600))
    XCTAssertEqual(transport.tls.certificateVerification, .full)
    XCTAssertEqual(transport.channel.balancing, .outlierDetection(.defaults, of: .roundRobin))
    XCTAssertEqual(transport.channel.healthCheckedService, "")
    XCTAssertEqual(transport.channel.idleTimeout, .seconds(600))
    XCTAssertEqual(transport.channel.maximumConnectionAge, .seconds(3600))
    XCTAssertEqual(transport.channel.zone, "eu-1a")
  }

  // MARK: Retries

  func testRetriesAreAPolicyForAllMethods() throws {
    var settings = try self.settings(["retry.maximumAttempts": .integer(4)])
    let policy = MethodConfig.RetryPolicy(
      maximumAttempts: 4,
      initialBackoff: .milliseconds(100),
      maximumBackoff: .seconds(1),
      backoffMultiplier: 2,
      retryableCodes: [.unavailable]
    )
    let expected = MethodConfig(names: [.init()], attempts: .retry(policy))
    XCTAssertEqual(settings.transport.channel.serviceConfig, ServiceConfig(methods: [expected]))

    // Rules of the program for other methods, and other rules for all, stay.
    let own = MethodConfig(names: [.init(service: "a.B")], timeout: .seconds(1))
    settings.transport.channel.serviceConfig?.methods = [
      own, MethodConfig(names: [.init()], timeout: .seconds(2)),
    ]
    settings = try self.settings(
      [
        "retry.maximumAttempts": .integer(2), "retry.initialBackoff": .text("1s"),
        "retry.maximumBackoff": .text("9s"), "retry.backoffMultiplier": .number(1.5),
        "retry.codes": .list(["unavailable", "aborted"]),
      ],
      defaults: settings
    )
    let other = MethodConfig.RetryPolicy(
      maximumAttempts: 2,
      initialBackoff: .seconds(1),
      maximumBackoff: .seconds(9),
      backoffMultiplier: 1.5,
      retryableCodes: [.unavailable, .aborted]
    )
    XCTAssertEqual(
      settings.transport.channel.serviceConfig?.methods,
      [own, MethodConfig(names: [.init()], timeout: .seconds(2), attempts: .retry(other))]
    )
  }

  func testServiceConfig() throws {
    let settings = try self.settings([
      "serviceConfig": .text(#"{"loadBalancingConfig": [{"round_robin": {}}]}"#)
    ])
    XCTAssertEqual(settings.transport.channel.serviceConfig?.loadBalancing, .roundRobin)
  }

  // MARK: Problems

  func testEachProblemNamesItsKeyAndWhatItHasToBe() {
    let cases: [(String, SettingValue, String)] = [
      ("host", .text("nothing"), "http://host:port"), ("host", .text(""), "http://host:port"),
      ("protocol", .text("gprc"), "connect, grpc, grpc-web, grpc-web-text or automatic"),
      ("codec", .text("xml"), "proto or json"), ("timeout", .text("10"), "with a unit"),
      ("timeout", .text("0s"), "at least"), ("timeout", .text("-1s"), "with a unit"),
      ("deadlineMargin", .text("none"), "with a unit"), ("get.maximumBytes", .integer(-1), "at least 0"),
      ("compression.requests", .text("lzma"), "gzip, deflate"),
      ("compression.responses", .list(["gzip", "gzip"]), "a list of gzip"),
      ("http.version", .text("3"), "automatic, 1.1 or 2"),
      ("connections.http2", .integer(0), "at least 1"),
      ("keepalive.interval", .text("1s"), "at least 10"), ("eventLoops", .integer(0), "at least 1"),
      ("proxy.url", .text("ftp://secret"), "socks5://"), ("tls.trustRoots", .text(""), "a PEM file"),
      ("tls.minimumVersion", .text("1.1"), "1.2 or 1.3"),
      ("balancing.policy", .text("random"), "round_robin"),
      ("serviceConfig", .text("{"), "JSON"), ("retry.codes", .list([]), "not empty"),
      ("retry.codes", .list(["ok"]), "unavailable"), ("retry.maximumAttempts", .integer(6), "at most 5"),
      ("retry.backoffMultiplier", .number(.nan), "at least 1"),
      ("waitForReady", .text("yes"), "true or false"),
    ]
    for (key, value, part) in cases {
      let problem = self.problem([key: value])
      XCTAssertTrue(problem.contains("orders.client.\(key) (ORDERS_CLIENT_"), problem)
      XCTAssertTrue(problem.contains(part), "\(problem) has no '\(part)'")
      XCTAssertFalse(problem.contains("secret"), problem)
    }
  }

  func testAllProblemsAreToldAtOnce() {
    let problem = self.problem(
      ["timeout": .text("x"), "eventLoops": .integer(-1)],
      listing: [.keys(["orders.client.tiemout"])],
      defaults: ClientSettings()
    )
    for part in ["orders.client.timeout", "orders.client.eventLoops", "tiemout", "orders.client.host"] {
      XCTAssertTrue(problem.contains(part), "\(problem) has no '\(part)'")
    }
  }

  func testSettingsThatNeedOthers() {
    let cases: [([String: SettingValue], String)] = [
      (["tls.certificateChain": .text("/a")], "tls.privateKey"),
      (["tls.privateKey": .text("/a")], "tls.certificateChain"),
      (["keepalive.timeout": .text("1s")], "keepalive.interval"),
      (["balancing.detectsOutliers": .flag(true)], "balancing.policy"),
      (["retry.codes": .list(["aborted"])], "retry.maximumAttempts"),
      (["retry.maximumAttempts": .integer(2), "serviceConfig": .text("{}")], "exclude each other"),
      (["retry.maximumAttempts": .integer(2), "retry.initialBackoff": .text("2s")], "shorter"),
      (["proxy.fromEnvironment": .flag(true), "proxy.url": .text("http://a:1")], "exclude each other"),
    ]
    for (values, part) in cases {
      let problem = self.problem(values)
      XCTAssertTrue(problem.contains(part), "\(problem) has no '\(part)'")
    }
  }

  func testHostIsNeeded() {
    XCTAssertTrue(self.problem([:], defaults: ClientSettings()).contains("orders.client.host"))
  }

  func testKeepaliveOfTheDefaultsIsChanged() throws {
    var defaults = ClientSettings(client: ProtocolClientConfig(host: "https://default.test"))
    defaults.transport.http2.keepalive = .init(interval: .seconds(20))
    let settings = try self.settings(["keepalive.timeout": .text("1s")], defaults: defaults)
    XCTAssertEqual(settings.transport.http2.keepalive, .init(interval: .seconds(20), timeout: .seconds(1)))
  }

  // MARK: Names

  func testUnknownNames() {
    let environment = SettingNames.environment([
      "ORDERS_CLIENT_TIMEOUT": "1s", "ORDERS_CLIENT_TLS_TRUST_ROOTS": "/a", "PATH": "/bin",
      "ORDERS_CLIENTS": "", "ORDERS_CLIENT": "", "ORDERS_CLIENT_TIME_OUT": "secret",
      "ORDERS_CLIENT_COLOUR_OF_THE_SKY": "blue",
    ])
    let problem = self.problem([:], listing: [environment])
    XCTAssertTrue(problem.contains("ORDERS_CLIENT_TIME_OUT is no setting: is timeout meant?"), problem)
    XCTAssertTrue(problem.contains("ORDERS_CLIENT_COLOUR_OF_THE_SKY is no setting: remove it"), problem)
    for part in ["ORDERS_CLIENTS", "ORDERS_CLIENT_TLS", "PATH", "secret", "blue"] {
      XCTAssertFalse(problem.contains(part), problem)
    }
    let keys = SettingNames.keys([
      "orders.client.tls.trustRoots", "orders.other", "orders.client.tls.trustroots",
    ])
    let other = self.problem([:], listing: [keys])
    XCTAssertTrue(
      other.contains("orders.client.tls.trustroots is no setting: is tls.trustRoots meant?"),
      other
    )
    XCTAssertFalse(other.contains("orders.other"), other)
  }

  func testWithoutAPrefixAllKeysAreLookedAt() {
    func problem(_ names: SettingNames) -> String? {
      do throws(ConnectError) {
        _ = try ClientSettings(values: ["host": .text("https://api.test")], under: [], listing: [names])
        return nil
      } catch {
        return error.message
      }
    }
    XCTAssertNil(problem(.keys(["host", "tls.trustRoots"])))
    let misspelt = problem(.keys(["host", "tls.trustRoot"]))
    XCTAssertEqual(
      misspelt?.contains("tls.trustRoot is no setting: is tls.trustRoots meant?"),
      true,
      "\(misspelt ?? "")"
    )
    let environment = problem(.environment(["HOST": "secret"]))
    XCTAssertEqual(environment?.contains("the settings have no prefix"), true, "\(environment ?? "")")
  }

  func testValuesThatCannotBeReadAreToldFromThoseOfAnotherType() {
    do throws(ConnectError) {
      _ = try ClientSettings(
        values: ["host": .text("https://api.test")],
        failures: ["eventLoops": .illTyped, "timeout": .unreadable("Vault.IsSealed")],
        under: ["orders"]
      )
      XCTFail("no error")
    } catch {
      let problem = error.message ?? ""
      XCTAssertTrue(
        problem.contains("orders.eventLoops (ORDERS_EVENT_LOOPS in the environment) has to be an integer"),
        problem
      )
      XCTAssertTrue(
        problem.contains(
          "orders.timeout (ORDERS_TIMEOUT in the environment) could not be read: its provider has thrown Vault.IsSealed"
        ),
        problem
      )
    }
  }

  func testHostsOfOtherSockets() throws {
    for host in ["unix:/run/api.sock", "unix-abstract:api", "vsock:3:50051"] {
      let settings = try self.settings(["host": .text(host)])
      XCTAssertEqual(settings.client.host, host)
    }
    XCTAssertTrue(self.problem(["host": .text("vsock:x")]).contains("unix-abstract:NAME or vsock:CID:PORT"))
  }

  func testKeysAreUniqueAlsoInTheEnvironment() {
    let keys = Setting.all.map(\.key)
    XCTAssertEqual(Set(keys).count, keys.count)
    let variables = Set(keys.map { $0.lowercased().filter { $0 != "." } })
    XCTAssertEqual(variables.count, keys.count)
  }

  /// The documentation lists all settings, and no others.
  func testDocumentationHasAllSettings() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/ConnectConfiguration/ConnectConfiguration.docc/ConnectConfiguration.md")
    let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter {
      $0.hasPrefix("| `")
    }
    let documented = rows.flatMap { row in
      row.split(separator: "|")[0].split(separator: "`").filter { !$0.contains(" ") }.map(String.init)
    }
    XCTAssertEqual(documented, Setting.all.map(\.key))
  }

  // MARK: Durations

  func testDurations() throws {
    for (text, milliseconds) in [
      ("0ms", 0), ("250ms", 250), ("1s", 1000), ("1.5s", 1500), ("2m", 120_000), ("1h", 3_600_000),
      ("0.5h", 1_800_000),
    ] {
      let settings = try self.settings(["deadlineMargin": .text(text)])
      XCTAssertEqual(settings.client.deadlineMargin, .milliseconds(milliseconds), text)
    }
    for text in [
      "", "s", "1", "1 s", " 1s", "1s ", "-1s", "+1s", "1e3s", "nans", "infs", "0x1s", ".5s", "1.s", "1.2.3s",
      "1d", "１s",
      "99999999999999999999h", "1S",
    ] {
      XCTAssertTrue(self.problem(["deadlineMargin": .text(text)]).contains("deadlineMargin"), text)
    }
  }
}
