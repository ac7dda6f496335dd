public import Connect
internal import DequeModule
internal import Synchronization

/// Explains calls: where the time of each went, in each interceptor and in each attempt, and what it cost.
///
/// ```swift
/// let explainer = CallExplainer()
/// let response = await client.unary(say, request, options: CallOptions().explained(by: explainer))
/// print(explainer.explanation)
/// ```
///
/// It puts a stopwatch around each interceptor of the call; other calls are not slowed down. One explainer serves any
/// number of calls, also at the same time.
public final class CallExplainer: Sendable {
  /// How many calls are remembered; beyond this number, the oldest are forgotten. At least 1.
  public let maximumCalls: Int
  private let time: ElapsedTime
  /// Oldest first.
  private let calls = Mutex<Deque<ExplainedCall>>([])

  /// An explainer that has seen no calls.
  ///
  /// - Parameters:
  ///   - maximumCalls: See ``maximumCalls``.
  ///   - clock: What times are measured with.
  public init(maximumCalls: Int = 100, clock: any Clock<Duration> = ContinuousClock()) {
    self.maximumCalls = max(maximumCalls, 1)
    self.time = ElapsedTime(on: clock)
  }

  /// What is known by now of the call that was made last. Empty before the first one.
  public var explanation: CallExplanation {
    self.calls.withLock { $0.last }?.explanation ?? CallExplanation()
  }

  /// What is known by now of each call, in the order in which they were made.
  public var explanations: [CallExplanation] {
    self.calls.withLock { Array($0) }.map(\.explanation)
  }

  /// Puts a stopwatch around each interceptor of a call, and one around and one inside of them all.
  ///
  /// - Parameter interceptors: Those of the call, outermost first.
  fileprivate func arrange(_ interceptors: [any Interceptor]) -> [any Interceptor] {
    let call = ExplainedCall(interceptors.map { "\(type(of: $0))" }, self.time)
    self.calls.withLock { calls in
      if calls.count >= self.maximumCalls { calls.removeFirst() }
      calls.append(call)
    }
    let timed: [any Interceptor] = interceptors.enumerated().map { index, interceptor in
      TimedInterceptor(base: interceptor, index: index, call: call)
    }
    return [OuterProbe(call: call)] + timed + [InnerProbe(call: call)]
  }
}

extension CallOptions {
  /// The same options, for calls that are explained.
  public func explained(by explainer: CallExplainer) -> CallOptions {
    var options = self
    let inner = self.arrangement
    options.arrangement = { explainer.arrange(inner?($0) ?? $0) }
    return options
  }
}
