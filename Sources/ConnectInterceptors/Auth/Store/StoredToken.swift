internal import Connect

/// What a ``CredentialStore`` keeps: a token, until when it is accepted, and to which login it belongs.
///
/// Its secrets appear in no description.
public struct StoredToken: Sendable {
  /// The token, with the refresh token. Its lifetime is nil, as a lifetime says nothing after a restart; see ``expiry``.
  public let token: AccessToken
  /// When the token expires, in whole seconds since 1970-01-01 00:00 UTC. Nil if only the server's refusal ends it.
  public let expiry: Duration?
  /// Names the login that the token comes from: a random text that stays the same while the token is refreshed. By it a
  /// process sees that the user of a shared store has changed.
  public let login: String

  /// A token to be stored. ``Credentials`` make it; a program needs this to import a login.
  ///
  /// - Parameters:
  ///   - token: See ``token``; its lifetime is not kept.
  ///   - expiry: See ``expiry``; rounded down.
  ///   - login: See ``login``; by default a new one.
  public init(_ token: AccessToken, expiry: Duration?, login: String = StoredToken.newLogin()) {
    self.token = AccessToken(
      token.value,
      headers: token.headers,
      refreshToken: token.refreshToken,
      scheme: token.scheme
    )
    // Whole seconds, so that what is loaded equals what was saved.
    self.expiry = expiry.map { .seconds($0.components.seconds) }
    self.login = login
  }

  /// A name that no other login has.
  public static func newLogin() -> String {
    var generator = SystemRandomNumberGenerator()
    return [generator.next(), generator.next()].map { String($0, radix: 36) }.joined()
  }

  /// The token for use now.
  ///
  /// - Returns: Nil if it has expired.
  func token(at now: Duration) -> AccessToken? {
    guard let expiry = self.expiry else { return self.token }
    guard expiry > now else { return nil }
    return AccessToken(
      self.token.value,
      headers: self.token.headers,
      refreshToken: self.token.refreshToken,
      scheme: self.token.scheme,
      expiresIn: (expiry - now).clamped
    )
  }
}

extension StoredToken: Equatable {
  public static func == (lhs: StoredToken, rhs: StoredToken) -> Bool {
    lhs.token.value == rhs.token.value && lhs.token.headers == rhs.token.headers
      && lhs.token.refreshToken == rhs.token.refreshToken && lhs.token.scheme == rhs.token.scheme
      && lhs.expiry == rhs.expiry && lhs.login == rhs.login
  }
}

extension StoredToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "StoredToken(redacted" + (self.expiry.map { ", expires at \($0.components.seconds))" } ?? ")")
  }

  public var debugDescription: String { self.description }

  public var customMirror: Mirror { Mirror(self, children: ["expiry": self.expiry as Any]) }
}
