public import Connect

/// The argument of a credentials provider: why a new token is due, and options for the provider's calls.
public struct CredentialsRefresh: Sendable {
  /// Why a new token is due.
  public enum Reason: Sendable, Hashable {
    /// There is no token yet.
    case missing
    /// The token will expire soon, and calls go on using it.
    case expiresSoon
    /// The token has expired, and calls wait for the new one.
    case expired
    /// The server refused the token.
    case refused
    /// ``Credentials/invalidate()`` was called, perhaps by another process with the same store.
    case invalidated
  }

  /// Why a new token is due.
  public let reason: Reason
  /// The token that the new one is to replace, with its refresh token; perhaps one that the store has kept since an earlier
  /// process. Nil after ``Credentials/invalidate()``.
  ///
  /// A server that gives no new refresh token wants the old one to be used again (RFC 6749, section 6): the provider then
  /// returns it with the new token.
  public let previous: AccessToken?
  /// Options for calls of the provider that inherit nothing of its task: in a detached task, in a callback, on a queue.
  /// Such calls then go without the credentials that are being fetched. Other calls of the provider need no options.
  ///
  /// ```swift
  /// login.getToken(request: .with { $0.clientID = id }, options: refresh.options) { response in
  ///   completion(response.result)
  /// }
  /// ```
  public let options: CallOptions
}

/// Set in `CallOptions.context`, lets a call go without credentials: a login, a health check.
///
/// ```swift
/// options.context[WithoutCredentials.self] = true
/// ```
public enum WithoutCredentials: CallContextKey {
  /// False: the call shows credentials.
  public static let defaultValue = false
}
