/// A service's rules for the calls of a method: the parts of a `methodConfig` of gRPC's service config that concern
/// calls.
///
/// The rules hold for the whole call, also where an interceptor sends its request to another host.
package final class MethodRules: Sendable {
  /// The longest time for a call.
  package let timeout: Duration?
  /// Whether calls wait for a server that can be reached, where the program does not say.
  package let waitForReady: Bool?
  /// In bytes, before compression.
  package let maximumRequestMessageSize: Int?
  /// In bytes, after decompression.
  package let maximumResponseMessageSize: Int?
  package let retry: RetryRules?
  /// Where the program gives no policy.
  package let hedging: HedgingPolicy?
  /// Who has set the timeout, for messages: `service config`, or `route`.
  package let timeoutSource: String
  /// Who has set the retries or hedges, for messages: `service config`, or `route`.
  package let attemptsSource: String
  /// Whether they leave calls as they are.
  package let areEmpty: Bool

  package init(
    timeout: Duration? = nil,
    waitForReady: Bool? = nil,
    maximumRequestMessageSize: Int? = nil,
    maximumResponseMessageSize: Int? = nil,
    retry: RetryRules? = nil,
    hedging: HedgingPolicy? = nil,
    timeoutSource: String = "service config",
    attemptsSource: String = "service config"
  ) {
    self.timeout = timeout.map { max($0.clamped, .zero) }
    self.waitForReady = waitForReady
    self.maximumRequestMessageSize = maximumRequestMessageSize
    self.maximumResponseMessageSize = maximumResponseMessageSize
    self.retry = retry
    self.hedging = hedging
    self.timeoutSource = timeoutSource
    self.attemptsSource = attemptsSource
    self.areEmpty =
      timeout == nil && waitForReady == nil && maximumRequestMessageSize == nil
      && maximumResponseMessageSize == nil && retry == nil && hedging == nil
  }
}

/// The rules that a call follows.
final class FollowedRules: Sendable {
  let method: MethodRules
  /// The deadline that the rules set, on the executor's clock; nil if they set none, or the call's own deadline is
  /// earlier.
  let deadline: Duration?

  init(_ method: MethodRules, deadline: Duration?) {
    self.method = method
    self.deadline = deadline
  }

  /// The timeout of the rules; nil unless it sets the call's deadline.
  var timeout: Duration? { self.deadline == nil ? nil : self.method.timeout }
}
