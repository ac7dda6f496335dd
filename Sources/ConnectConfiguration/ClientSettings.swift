public import Connect
public import ConnectNIO

/// The configurations of a client and of its transport, as settings from outside of the program say: environment variables or
/// files, by swift-configuration.
///
/// The initializer that reads is there with the package trait `Configuration`. What no setting says, such as interceptors, is
/// as in the given defaults, and can be changed before the client is made.
public struct ClientSettings: Sendable {
  /// How the client makes its calls.
  public var client: ProtocolClientConfig
  /// What the transport does.
  public var transport: NIOHTTPClient.Configuration

  /// Configurations as given, for the defaults of settings.
  ///
  /// - Parameters:
  ///   - client: The client's. By default without a host, so that the settings must have one.
  ///   - transport: The transport's.
  public init(
    client: ProtocolClientConfig = ProtocolClientConfig(host: ""),
    transport: NIOHTTPClient.Configuration = .defaults
  ) {
    self.client = client
    self.transport = transport
  }

  /// Settings from values that a provider has found.
  ///
  /// - Parameters:
  ///   - values: What was found, by key without the prefix.
  ///   - illTyped: The keys with values that have not the type of their setting.
  ///   - prefix: The components of the key below which the settings are.
  ///   - names: The names of all that the providers have, where they can tell.
  ///   - defaults: What is not set.
  /// - Throws: `ConnectError` with `failed_precondition`, which names all keys with problems.
  package init(
    values: [String: SettingValue],
    illTyped: Set<String> = [],
    under prefix: [String],
    listing names: [SettingNames] = [],
    defaults: ClientSettings = ClientSettings()
  ) throws(ConnectError) {
    let names = names.flatMap { $0.unknown(under: prefix) }
    var problems = names.map { "\($0) is no setting: \(SettingNames.suggestion(for: $0, under: prefix))" }
    var draft = SettingsDraft(defaults)
    for setting in Setting.all {
      let name = SettingNames.both(prefix, setting.key)
      guard !illTyped.contains(setting.key) else {
        problems.append("\(name) has to be \(setting.expected)")
        continue
      }
      guard let value = values[setting.key] else { continue }
      draft.given.insert(setting.key)
      do throws(Setting.Refusal) {
        try setting.apply(value, &draft)
      } catch {
        problems.append("\(name) has to be \(setting.expected)\(error.reason.map { ": \($0)" } ?? "")")
      }
    }
    let settings = draft.finished { problems.append("\(SettingNames.both(prefix, $0)) \($1)") }
    guard problems.isEmpty else {
      throw ConnectError(
        code: .failedPrecondition,
        message: "the client's settings cannot be used: \(problems.joined(separator: "; "))"
      )
    }
    self = settings
  }
}
