#if Configuration
public import Configuration
public import Connect

extension ClientSettings {
  /// Settings that a reader finds below a key. <doc:ConnectConfiguration> has the list of all settings.
  ///
  /// ```swift
  /// let reader = ConfigReader(providers: [
  ///   EnvironmentVariablesProvider(),
  ///   try await FileProvider<JSONSnapshot>(filePath: "/etc/orders.json"),
  /// ])
  /// let settings = try await ClientSettings(
  ///   from: reader,
  ///   under: "orders.client",
  ///   listing: [.environment(), try .json(file: "/etc/orders.json")]
  /// )
  /// ```
  ///
  /// Each setting is read once. The first provider that has it wins.
  ///
  /// - Parameters:
  ///   - reader: Where the settings are.
  ///   - prefix: The key below which they are. If the reader has a scope, below that; then `listing` tells of names in that
  ///     scope only if they are ``SettingNames/keys(_:)`` without it.
  ///   - names: The names of all that the providers have, where they can tell. A setting that does not exist is an error only
  ///     if its name is there: with an empty list, a misspelt setting is not noticed.
  ///   - defaults: What is not set: interceptors, for example. By default without a host, so that the settings must have one.
  /// - Throws: `ConnectError` with `failed_precondition`. Its message names all keys with problems: settings that do not exist,
  ///   are missing, could not be read, or are not what they have to be. It has no values, as these may be secrets.
  ///   With `canceled` if the task was cancelled.
  public init(
    from reader: ConfigReader,
    under prefix: ConfigKey,
    listing names: [SettingNames],
    defaults: ClientSettings = ClientSettings()
  ) async throws(ConnectError) {
    let scope = reader.scoped(to: prefix)
    var values: [String: SettingValue] = [:]
    var failures: [String: SettingFailure] = [:]
    for setting in Setting.all {
      do {
        values[setting.key] = try await scope.value(of: setting)
      } catch let error as CancellationError {
        throw ConnectError(
          code: .canceled,
          message: "the reading of the client's settings was cancelled",
          exception: error
        )
      } catch {
        failures[setting.key] = SettingFailure(error)
      }
    }
    try self.init(
      values: values,
      failures: failures,
      under: prefix.components,
      listing: names,
      defaults: defaults
    )
  }
}

extension SettingFailure {
  /// The error may have the value, so no more than its type is told.
  fileprivate init(_ error: any Error) {
    let type = String(reflecting: Swift.type(of: error))
    // What the readers and providers of swift-configuration throw for a value of another type. It is not public. If its name
    // changes, the message still names the setting and the type of the error.
    self = type == "Configuration.ConfigError" ? .illTyped : .unreadable(type)
  }
}

extension ConfigReader {
  /// The value of a setting; nil if there is none.
  fileprivate func value(of setting: Setting) async throws -> SettingValue? {
    let key = ConfigKey(setting.key)
    let isSecret = setting.isSecret
    return switch setting.kind {
    case .text: try await self.fetchString(forKey: key, isSecret: isSecret).map { .text($0) }
    case .integer: try await self.fetchInt(forKey: key, isSecret: isSecret).map { .integer($0) }
    case .number: try await self.fetchDouble(forKey: key, isSecret: isSecret).map { .number($0) }
    case .flag: try await self.fetchBool(forKey: key, isSecret: isSecret).map { .flag($0) }
    case .list: try await self.fetchStringArray(forKey: key, isSecret: isSecret).map { .list($0) }
    }
  }
}
#endif
