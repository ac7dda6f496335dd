public import Connect

/// What a picker adds to a call. A picker makes it once, and gives it with many picks, so that picks allocate nothing.
public final class PickAdditions: Sendable, Hashable {
  /// Is added to the request's headers, behind those of the call. Fields of the call with the same name stay. Each attempt of
  /// a call gets what its own pick adds. Interceptors do not see it.
  public let metadata: Headers
  /// The name of the cluster that the endpoint belongs to, for observers; nil for the channel's own.
  public let cluster: String?
  /// Counts the call; nil if nobody counts.
  let counting: Counting?

  /// Who counts a call.
  struct Counting {
    let statistics: CallStatistics
    /// Of the endpoint's zone.
    let counter: CallCounter
  }

  /// What a picker adds to calls. Names and values are checked as those of a call's own headers are.
  ///
  /// - Throws: `ConnectError` with `invalid_argument` if a header must not be added. Examples: a name that is no token or a
  ///   pseudo-header, `te`, `content-type`, `user-agent`, names that begin with `grpc-` or `connect-`; a value with CR, LF or
  ///   NUL; a value that is not base64 under a name that ends with `-bin`.
  public init(metadata: Headers = Headers(), cluster: String? = nil) throws(ConnectError) {
    try HeaderRules.check(added: metadata)
    self.metadata = metadata
    self.cluster = cluster
    self.counting = nil
  }

  /// Counts a call.
  ///
  /// - Parameter other: What else is added to the call.
  init(_ counting: Counting, beside other: PickAdditions? = nil) {
    self.metadata = other?.metadata ?? Headers()
    self.cluster = counting.statistics.cluster
    self.counting = counting
  }

  public static func == (left: PickAdditions, right: PickAdditions) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
