public import Connect

/// A secret that a call shows to the server, and how long it is good for.
///
/// The secret appears in no description, so not in logs, test failures or dumps either.
public struct AccessToken: Sendable {
  /// The secret itself. Empty if the token consists of ``headers`` alone.
  public let value: String
  /// Headers that carry secrets besides the token's own header.
  public let headers: Headers
  /// How long the token is accepted, counted from when ``Credentials`` receive it: OAuth's `expires_in`. Nil if only the
  /// server's refusal ends it.
  public let lifetime: Duration?
  /// What the provider gets the next token with, if the server has given it: OAuth's `refresh_token`. It is never sent with
  /// calls. The provider finds it in ``CredentialsRefresh/previous``, and a ``CredentialStore`` keeps it.
  public let refreshToken: String?
  /// What comes before the value in the header: OAuth's `token_type`. Nil for ``Credentials/Configuration/scheme``.
  public let scheme: String?

  /// A token; without a lifetime it is used until a server refuses it.
  ///
  /// - Parameters:
  ///   - value: See ``value``.
  ///   - headers: Sent as they are, besides the value in the header of ``Credentials/Configuration/header``.
  ///   - refreshToken: See ``refreshToken``.
  ///   - scheme: See ``scheme``.
  ///   - lifetime: See ``lifetime``.
  public init(
    _ value: String,
    headers: Headers = Headers(),
    refreshToken: String? = nil,
    scheme: String? = nil,
    expiresIn lifetime: Duration? = nil
  ) {
    self.value = value
    self.headers = headers
    self.refreshToken = refreshToken
    self.scheme = scheme
    self.lifetime = lifetime
  }

  /// A token that consists of these headers alone, whatever their names.
  public init(headers: Headers, expiresIn lifetime: Duration? = nil) {
    self.init("", headers: headers, expiresIn: lifetime)
  }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "AccessToken(redacted" + (self.lifetime.map { ", expires in \($0.clamped))" } ?? ")")
  }

  public var debugDescription: String { self.description }

  public var customMirror: Mirror { Mirror(self, children: ["lifetime": self.lifetime as Any]) }
}
