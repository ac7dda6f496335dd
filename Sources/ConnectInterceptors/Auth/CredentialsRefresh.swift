public import Connect

/// What a provider of credentials is told when a new token is due.
public struct CredentialsRefresh: Sendable {
  /// Why a new token is due.
  public enum Reason: Sendable, Hashable {
    /// There is none yet.
    case missing
    /// The one there is will soon expire, and calls go on using it.
    case expiresSoon
    case expired
    /// The server answered a call with `unauthenticated`.
    case refused
  }

  public let reason: Reason
  /// The token that the new one is to replace, for providers that need it.
  public let previous: AccessToken?

  /// For calls that the provider makes with a client whose calls these credentials are for: a call with these options
  /// goes without them. One with other options waits for the very token that is being fetched, until
  /// ``Credentials/Configuration/refreshTimeout``.
  public var options: CallOptions {
    var options = CallOptions()
    options.context[WithoutCredentials.self] = true
    return options
  }
}

/// Set in ``Connect/CallOptions/context``, lets a call go without credentials: a login, a health check.
///
/// ```swift
/// options.context[WithoutCredentials.self] = true
/// ```
public enum WithoutCredentials: CallContextKey {
  public static let defaultValue = false
}
