public import Connect
internal import NIOCore

/// Retries failed calls, as a ``RetryPolicy`` says and a `RetryBudget` allows.
///
/// ```swift
/// let budget = RetryBudget()
/// config.interceptors = [{ _ in RetryInterceptor(policy: .defaults, budget: budget) }]
/// ```
///
/// It has byte hooks: hooks for messages do not see abandoned attempts, and interceptors inside see each attempt. A stream
/// is retried until something of its response has gone out to the caller, with the request messages sent so far. From
/// the second attempt on, the request says in `grpc-previous-rpc-attempts` how many there were.
///
/// If the channel's service config has a retry policy for the method, its attempts, codes and backoff replace the policy's,
/// also for methods that are not marked as idempotent. The budget applies as well.
public final class RetryInterceptor: Interceptor {
  /// gRPC's proposal A6. It is sent in each of the protocols.
  private static let attemptsHeader = "grpc-previous-rpc-attempts"

  private let plan: RetryPlan
  private var method: MethodInfo?
  /// What the service config says of the method; nil for nothing.
  private var rules: RetryRules?
  /// How many attempts have passed here.
  private var attemptCount = 0
  /// How many backoff waits there were since the call began or the server last set a delay.
  private var backoffCount = 0
  /// Whether the stream's outcome has been counted in the budget.
  private var isCounted = false
  private var heldHeaders: HeldHeaders?

  /// An interceptor for one call, as each factory makes it.
  ///
  /// - Parameters:
  ///   - policy: Which calls are retried, how often, and when.
  ///   - budget: One for all calls of a client.
  public convenience init(policy: RetryPolicy = .defaults, budget: RetryBudget) {
    self.init(RetryPlan(policy: policy, budget: budget))
  }

  init(_ plan: RetryPlan) {
    self.plan = plan
  }

  private var policy: RetryPolicy { self.plan.policy }
  private var budget: RetryBudget { self.plan.budget }

  // MARK: Hooks

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { request in self.announce(&request) },
      updateResponse: { response in
        guard let error = response.error else {
          // A cache's answer says nothing about the server.
          if response.request != nil { self.recordSuccess() }
          return .proceed
        }
        return self.delayOfRetry(after: error, hasHead: response.httpStatus != nil).map { .retry(after: $0) }
          ?? .proceed
      }
    )
    .placed(.userIndependent)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        self.heldHeaders = nil
        self.isCounted = false
        var request = request
        self.announce(&request)
        proceed(.success(request))
      },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers:
          if self.holdsHeaders { self.heldHeaders = HeldHeaders(result, proceed) } else { proceed(result) }
        case .message, .complete(_, nil, _):
          self.heldHeaders.take()?.release()
          self.countSuccess()
          proceed(result)
        case .complete(_, let error?, _):
          // After a message, the outcome is already counted, and a retry is impossible.
          guard !self.isCounted, let delay = self.delayOfRetry(after: error) else {
            self.heldHeaders.take()?.release()
            proceed(result)
            return
          }
          let headers = self.heldHeaders.take()
          proceed.retry(after: delay)
          // If the retry is refused, the headers go out before the error. Otherwise this does nothing.
          headers?.release()
        }
      }
    )
  }

  // MARK: Requests

  private func announce<Message>(_ request: inout HTTPRequest<Message>) {
    self.method = request.method
    self.rules = request.retryRules
    self.attemptCount += 1
    guard self.attemptCount > 1 else { return }
    request.headers[Self.attemptsHeader] = ["\(self.attemptCount - 1)"]
  }

  // MARK: Streams

  /// The service's rules alone hold no headers: a caller may wait for headers before it sends anything.
  private var holdsHeaders: Bool {
    self.policy.holdsStreamHeaders && self.mayRetry && (self.rules == nil || self.isRepeatable)
  }

  private func countSuccess() {
    guard !self.isCounted else { return }
    self.isCounted = true
    self.recordSuccess()
  }

  // MARK: Budgets

  private var allowsRetry: Bool { self.budget.allowsRetry && self.rules?.throttle?.allowsRetry ?? true }

  private func recordSuccess() {
    self.budget.recordSuccess()
    self.rules?.throttle?.recordSuccess()
  }

  private func recordFailure() -> Bool {
    let isAllowed = self.budget.recordFailure()
    return self.rules?.throttle?.recordFailure() ?? true && isAllowed
  }

  // MARK: Decisions

  /// Whether another attempt is possible at all.
  private var mayRetry: Bool {
    // A service's owner knows which methods may be called twice.
    if let rules = self.rules { return self.attemptCount < rules.maximumAttempts }
    return self.attemptCount < self.policy.maximumAttempts && self.isRepeatable
  }

  /// Whether the program says that the method's calls may be made twice.
  private var isRepeatable: Bool { self.method.map(self.policy.methods) ?? false }

  /// How long to wait before another attempt; nil if there is to be none.
  ///
  /// - Parameter hasHead: Whether a response had begun. If its connection is then lost, the service's rules alone allow no
  ///   retry (gRFC A6: headers commit the call).
  private func delayOfRetry(after error: ConnectError, hasHead: Bool = false) -> Duration? {
    if error.isFinal || hasHead && error.isConnectionLost && self.rules != nil && !self.isRepeatable {
      return nil
    }
    let isRetryable = (self.rules?.codes ?? self.policy.codes).contains(error.code)
    let serverDelay = ServerDelay(error)
    guard isRetryable || serverDelay == .never else { return nil }
    // Each such failure counts, even without a retry. A call that a guard refused to send does not count.
    let isAllowed = error.isUnsent ? self.allowsRetry : self.recordFailure()
    guard isAllowed, isRetryable, self.mayRetry else { return nil }
    switch serverDelay {
    case .never:
      return nil
    case .exactly(let delay):
      guard delay <= self.policy.longestServerDelay else { return nil }
      self.backoffCount = 0
      return delay
    case .atLeast(let delay):
      guard delay <= self.policy.longestServerDelay else { return nil }
      return delay.clamped + self.nextBackoff()
    case nil:
      return self.nextBackoff()
    }
  }

  private func nextBackoff() -> Duration {
    self.backoffCount += 1
    let random = self.policy.random()
    if let rules = self.rules { return rules.delay(beforeRetry: self.backoffCount, random: random) }
    return self.policy.backoff.delay(beforeRetry: self.backoffCount, random: random)
  }
}

extension RetryInterceptor: RetryRulesFollowing {}

extension RetryInterceptor: ConfigurationChecking {
  package func problem(in config: ProtocolClientConfig) -> String? {
    let cap = max(config.retries.maximumRetries, 0)
    guard self.policy.maximumAttempts > 0, self.policy.maximumAttempts - 1 > cap else { return nil }
    return
      "RetryPolicy.maximumAttempts is \(self.policy.maximumAttempts), but a call of this client makes no more than "
      + "\(cap) retries: ProtocolClientConfig.Retries.maximumRetries"
  }
}

/// Shared by the interceptors of a client's calls, so that each copies one reference.
final class RetryPlan: Sendable {
  let policy: RetryPolicy
  let budget: RetryBudget

  init(policy: RetryPolicy, budget: RetryBudget) {
    self.policy = policy
    self.budget = budget
  }
}
