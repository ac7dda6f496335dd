/// What limits the retries of a call, whichever of its interceptors asks for them.
struct RetryLimits {
  private let maximumRetries: Int
  private let remainingTime: Duration?

  /// - Parameters:
  ///   - maximumRetries: How many retries the call makes at most.
  ///   - remainingTime: The time left until the deadline; nil without a deadline.
  init(maximumRetries: Int, remainingTime: Duration?) {
    self.maximumRetries = maximumRetries
    self.remainingTime = remainingTime
  }

  /// Whether the call may make another retry after `delay`.
  ///
  /// - Parameter count: How many retries it has made.
  func allowRetry(after delay: Duration, count: Int) -> Bool {
    count < self.maximumRetries && self.remainingTime.map { delay < $0 } ?? true
  }
}
