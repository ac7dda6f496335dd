/// A secret that a call shows to the server, and how long it is good for.
///
/// The secret appears in no description, so not in logs, test failures or dumps either.
public struct AccessToken: Sendable {
  /// The secret itself.
  public let value: String
  /// How long the token is accepted, from when it was handed over: OAuth's `expires_in`. Nil if only the server's
  /// refusal ends that.
  public let lifetime: Duration?

  public init(_ value: String, expiresIn lifetime: Duration? = nil) {
    self.value = value
    self.lifetime = lifetime
  }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "AccessToken(redacted" + (self.lifetime.map { ", expires in \($0))" } ?? ")")
  }

  public var debugDescription: String { self.description }

  public var customMirror: Mirror { Mirror(self, children: ["lifetime": self.lifetime as Any]) }
}
