/// Keeps attempts beyond the first from making an outage worse. All calls of a client share it. It records how attempts
/// end, and says whether further attempts may start.
///
/// `RetryBudget` of the module `ConnectInterceptors` is an implementation. A budget is called on the executors of
/// calls, from several threads at once, and must not block.
public protocol AttemptBudget: AnyObject, Sendable {
  /// Whether there may be another attempt.
  var allowsRetry: Bool { get }

  /// Called for each attempt that succeeded.
  func recordSuccess()

  /// Called for each attempt whose failure shows that the server is in trouble.
  ///
  /// - Returns: Whether this attempt may be followed by another.
  @discardableResult
  func recordFailure() -> Bool
}
