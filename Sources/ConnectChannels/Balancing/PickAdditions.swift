public import Connect

/// What a picker adds to a call. A picker makes it once, and gives it with many picks.
public final class PickAdditions: Sendable, Hashable {
  /// Is added to the request's headers, behind those of the call.
  public let metadata: Headers
  /// The name of the cluster that the endpoint belongs to, for observers; nil for the channel's own.
  public let cluster: String?

  /// What a picker adds to calls.
  ///
  /// - Throws: `ConnectError` with `invalid_argument` if a header has a name or a value that must not be sent.
  public init(metadata: Headers = Headers(), cluster: String? = nil) throws(ConnectError) {
    self.metadata = metadata
    self.cluster = cluster
  }

  public static func == (left: PickAdditions, right: PickAdditions) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
