#if Configuration
import Configuration
import Connect
import ConnectChannels
import ConnectConfiguration
import ConnectNIO
import Foundation
import XCTest

/// Settings from the providers of swift-configuration. Built with the package trait `Configuration`.
final class SettingsReaderTests: XCTestCase {
  private func problem(_ body: () async throws -> ClientSettings) async -> String {
    do {
      _ = try await body()
      return "no error"
    } catch {
      XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
      return (error as? ConnectError)?.message ?? ""
    }
  }

  private func folder() throws -> URL {
    let folder = URL(filePath: NSTemporaryDirectory()).appending(
      path: "connect-settings-\(UUID().uuidString)"
    )
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    return folder
  }

  /// The provider of a JSON file.
  private static func provider(_ file: URL) async throws -> FileProvider<JSONSnapshot> {
    let path = ConfigValue(.string(file.path()), isSecret: false)
    return try await FileProvider(
      config: ConfigReader(provider: InMemoryProvider(values: ["filePath": path]))
    )
  }

  /// Values that all settings take, by key.
  private static let values: [String: SettingValue] = {
    let texts = [
      "host": "https://api.test", "protocol": "grpc", "codec": "json", "compression.requests": "gzip",
      "http.version": "2", "proxy.url": "http://proxy.test:1", "tls.trustRoots": "/ca.pem",
      "tls.certificateChain": "/chain.pem", "tls.privateKey": "/key.pem", "tls.serverName": "api.test",
      "tls.minimumVersion": "1.3", "balancing.policy": "round_robin", "health.service": "a.B",
      "serviceConfig": "{}",
    ]
    let lists = ["retry.codes": ["unavailable", "aborted"], "compression.responses": ["gzip", "deflate"]]
    let pairs = Setting.all.map { setting -> (String, SettingValue) in
      switch setting.kind {
      case .text: (setting.key, .text(texts[setting.key] ?? "10s"))
      case .integer: (setting.key, .integer(3))
      case .number: (setting.key, .number(2.5))
      case .flag: (setting.key, .flag(true))
      case .list: (setting.key, .list(lists[setting.key] ?? []))
      }
    }
    return Dictionary(uniqueKeysWithValues: pairs)
  }()

  /// Each setting alone, with what it needs.
  private static func needs(_ key: String) -> Set<String> {
    switch key {
    case "tls.certificateChain", "tls.privateKey": ["tls.certificateChain", "tls.privateKey"]
    case "keepalive.timeout", "keepalive.withoutCalls": [key, "keepalive.interval"]
    case "balancing.detectsOutliers": [key, "balancing.policy"]
    case "retry.maximumBackoff", "retry.backoffMultiplier", "retry.codes": [key, "retry.maximumAttempts"]
    case "retry.initialBackoff": [key, "retry.maximumAttempts", "retry.maximumBackoff"]
    default: [key]
    }
  }

  private static func text(_ value: SettingValue) -> String {
    switch value {
    case .text(let text): text
    case .integer(let number): "\(number)"
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    case .list(let list): list.joined(separator: ",")
    }
  }

  /// The names of environment variables are those that swift-configuration looks for.
  func testEachSettingIsReadFromTheEnvironment() async throws {
    for setting in Setting.all {
      var variables = ["ORDERS_HOST": "https://default.test"]
      for key in Self.needs(setting.key) {
        var name = ""
        for character in key {
          name += character.isUppercase ? "_\(character)" : character == "." ? "_" : "\(character)"
        }
        variables["ORDERS_\(name.uppercased())"] = Self.text(try XCTUnwrap(Self.values[key]))
      }
      let reporter = Reporter()
      let reader = ConfigReader(
        provider: EnvironmentVariablesProvider(environmentVariables: variables),
        accessReporter: reporter
      )
      let settings = try await ClientSettings(
        from: reader,
        under: "orders",
        listing: [.environment(variables)]
      )
      let needed = Self.needs(setting.key).union(["host"])
      XCTAssertEqual(reporter.keys, Set(needed.map { "orders.\($0)" }), setting.key)
      let host = setting.key == "host" ? "https://api.test" : "https://default.test"
      XCTAssertEqual(settings.client.host, host)
      // And a value of another type is told by its name.
      guard let name = variables.keys.first(where: { $0 != "ORDERS_HOST" }), setting.kind != .text,
        setting.kind != .list, Self.needs(setting.key).count == 1
      else { continue }
      variables[name] = "secret"
      let wrong = variables
      let problem = await self.problem {
        let reader = ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: wrong))
        return try await ClientSettings(from: reader, under: "orders", listing: [])
      }
      XCTAssertTrue(problem.contains("orders.\(setting.key) (\(name) in the environment) has to be"), problem)
      XCTAssertFalse(problem.contains("secret"), problem)
    }
  }

  func testEnvironmentComesBeforeAFile() async throws {
    let file = try self.folder().appending(path: "settings.json")
    let json = """
      {"orders": {"client": {
        "host": "https://file.test", "timeout": "5s", "eventLoops": 2, "waitForReady": true,
        "retry": {"maximumAttempts": 3, "backoffMultiplier": 1.5, "codes": ["aborted"]},
        "tls": {"minimumVersion": "1.3"}
      }}, "other": {"host": 1}}
      """
    try Data(json.utf8).write(to: file)
    let variables = ["ORDERS_CLIENT_TIMEOUT": "1s", "ORDERS_CLIENT_EVENT_LOOPS": "3"]
    let reader = ConfigReader(providers: [
      EnvironmentVariablesProvider(environmentVariables: variables),
      try await Self.provider(file),
    ])
    let settings = try await ClientSettings(
      from: reader,
      under: "orders.client",
      listing: [.environment(variables), try .json(file: file.path())]
    )
    XCTAssertEqual(settings.client.host, "https://file.test")
    XCTAssertEqual(settings.client.timeout, .seconds(1))
    XCTAssertEqual(settings.transport.eventLoops, 3)
    XCTAssertTrue(settings.client.waitForReady)
    XCTAssertEqual(settings.transport.tls.minimumVersion, .tls13)
    XCTAssertEqual(settings.transport.channel.serviceConfig?.methods.count, 1)
  }

  func testProblemsOfAFile() async throws {
    let file = try self.folder().appending(path: "settings.json")
    let json = """
      {"orders": {"host": "https://file.test", "timeout": 5, "eventLoops": "two", "tls": {"trustRoot": "secret"}, "balancing": []}}
      """
    try Data(json.utf8).write(to: file)
    let problem = await self.problem {
      let reader = ConfigReader(provider: try await Self.provider(file))
      return try await ClientSettings(from: reader, under: "orders", listing: [try .json(file: file.path())])
    }
    for part in [
      "orders.timeout (ORDERS_TIMEOUT in the environment) has to be a duration as text", "orders.eventLoops",
      "orders.tls.trustRoot is no setting: is tls.trustRoots meant?", "orders.balancing is no setting",
    ] {
      XCTAssertTrue(problem.contains(part), "\(problem) has no '\(part)'")
    }
    XCTAssertFalse(problem.contains("secret"), problem)
  }

  func testFilesOfNamesThatCannotBeRead() throws {
    let file = try self.folder().appending(path: "settings.json")
    XCTAssertThrowsError(try SettingNames.json(file: file.path())) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
    }
    try Data("[1]".utf8).write(to: file)
    XCTAssertThrowsError(try SettingNames.json(file: file.path()))
  }

  func testSecretsAreMarkedForAccessReporters() async throws {
    let reporter = Reporter()
    let values: [AbsoluteConfigKey: ConfigValue] = [
      "orders.host": "https://api.test", "orders.proxy.url": "http://ada:hidden@proxy.test:1",
    ]
    let reader = ConfigReader(provider: InMemoryProvider(values: values), accessReporter: reporter)
    _ = try await ClientSettings(from: reader, under: "orders", listing: [])
    XCTAssertTrue(reporter.seen.contains("https://api.test"))
    XCTAssertFalse(reporter.seen.contains("hidden"))
  }

  // MARK: Providers that fail

  private struct VaultIsSealed: Error {
    let secret = "hidden"
  }

  private struct FailingProvider: ConfigProvider, ConfigSnapshot {
    let error: any Error
    var providerName: String { "failing" }

    func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
      LookupResult(encodedKey: key.description, value: nil)
    }

    func fetchValue(forKey key: AbsoluteConfigKey, type: ConfigType) async throws -> LookupResult {
      if key.components.last == "timeout" { throw self.error }
      return LookupResult(encodedKey: key.description, value: nil)
    }

    nonisolated(nonsending) func watchValue<Return: ~Copyable>(
      forKey key: AbsoluteConfigKey,
      type: ConfigType,
      updatesHandler:
        nonisolated(nonsending) (
          _ updates: ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>
        ) async throws -> Return
    ) async throws -> Return {
      try await self.watchValueFromValue(forKey: key, type: type, updatesHandler: updatesHandler)
    }

    func snapshot() -> any ConfigSnapshot { self }

    nonisolated(nonsending) func watchSnapshot<Return: ~Copyable>(
      updatesHandler:
        nonisolated(nonsending) (
          _ updates: ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>
        ) async throws -> Return
    ) async throws -> Return {
      try await self.watchSnapshotFromSnapshot(updatesHandler: updatesHandler)
    }
  }

  func testProviderThatFails() async {
    let defaults = ClientSettings(client: ProtocolClientConfig(host: "https://default.test"))
    let problem = await self.problem {
      let reader = ConfigReader(provider: FailingProvider(error: VaultIsSealed()))
      return try await ClientSettings(from: reader, under: "orders", listing: [], defaults: defaults)
    }
    XCTAssertTrue(
      problem.contains("orders.timeout (ORDERS_TIMEOUT in the environment) could not be read"),
      problem
    )
    XCTAssertTrue(problem.contains("VaultIsSealed"), problem)
    XCTAssertFalse(problem.contains("hidden"), problem)
  }

  func testCancellation() async {
    do {
      let reader = ConfigReader(provider: FailingProvider(error: CancellationError()))
      _ = try await ClientSettings(from: reader, under: "orders", listing: [])
      XCTFail("no error")
    } catch {
      XCTAssertEqual(error.code, .canceled)
    }
  }

  private final class Reporter: AccessReporter, @unchecked Sendable {
    private let lock = NSLock()
    private var text = ""
    private var found: Set<String> = []

    /// The keys that have values.
    var keys: Set<String> { self.lock.withLock { self.found } }
    var seen: String { self.lock.withLock { self.text } }

    func report(_ event: AccessEvent) {
      guard case .success(let value?) = event.result else { return }
      self.lock.withLock {
        self.text += "\(value)\n"
        self.found.insert(event.metadata.key.components.joined(separator: "."))
      }
    }
  }
}
#endif
