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
  ///   - failures: The keys with values that no provider could give.
  ///   - prefix: The components of the key below which the settings are.
  ///   - names: The names of all that the providers have, where they can tell.
  ///   - defaults: What is not set.
  /// - Throws: `ConnectError` with `failed_precondition`, which names all keys with problems.
  package init(
    values: [String: SettingValue],
    failures: [String: SettingFailure] = [:],
    under prefix: [String],
    listing names: [SettingNames] = [],
    defaults: ClientSettings = ClientSettings()
  ) throws(ConnectError) {
    var problems = names.flatMap { $0.problems(under: prefix) }
    var draft = SettingsDraft(defaults)
    for setting in Setting.all {
      let name = SettingNames.both(prefix, setting.key)
      switch failures[setting.key] {
      case .illTyped:
        problems.append("\(name) has to be \(setting.expected)")
        continue
      case .unreadable(let type):
        problems.append("\(name) could not be read: its provider has thrown \(type)")
        continue
      case nil: break
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
