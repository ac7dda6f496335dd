/// Keeps attempts beyond the first from making an outage worse: shared by all calls of a client, it is told how attempts
/// end, and says whether there may be more of them.
///
/// `RetryBudget` of the module `ConnectInterceptors` is one. It is called on the executors of calls, from several
/// threads at once, and must not block.
public protocol AttemptBudget: AnyObject, Sendable {
  /// Whether there may be another attempt.
  var allowsRetry: Bool { get }

  /// To be told of each attempt that succeeded.
  func recordSuccess()

  /// To be told of each attempt that failed in a way that says that the server is in trouble.
  ///
  /// - Returns: Whether this attempt may be followed by another.
  @discardableResult
  func recordFailure() -> Bool
}
