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
}

/// Set in ``Connect/CallOptions/context``, lets a call go without credentials: a login, a health check.
///
/// ```swift
/// options.context[WithoutCredentials.self] = true
/// ```
public enum WithoutCredentials: CallContextKey {
  public static let defaultValue = false
}
