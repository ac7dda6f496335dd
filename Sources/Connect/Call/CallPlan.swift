internal import Logging

/// The immutable description of a call. A call with service rules continues with a second plan that includes them.
final class CallPlan: Sendable {
  let environment: CallEnvironment
  /// The protocols of a client that may choose; nil if the client speaks one.
  let choices: ProtocolChoices?
  let method: AnyMethod
  /// How the caller calls the method.
  let streamType: StreamType
  /// The metadata that the caller sends.
  let headers: Headers
  /// The call's context, including inherited values.
  let context: CallContext
  /// What the caller has asked for.
  private let given: Given
  /// Whether a tool examines the call, so that metrics include the encodings of messages.
  let isExplained: Bool
  /// What to bind or measure around hooks; nil for nothing.
  let inheritance: Inheritance?
  /// Makes messages of responses in place of the codec; nil for none.
  let parser: ResponseParser?
  let writer: RequestWriter
  /// The service's rules for the call; nil if there are none, or while they are unknown.
  let rules: FollowedRules?

  private struct Given {
    /// The time that the call may take, if the service's rules give no shorter one; nil for no limit.
    let timeout: Duration?
    /// When this time is over, on the executor's clock.
    let deadline: Duration?
    /// Whether the call waits for a server that can be reached; nil for the default of the client or the rules.
    let waitForReady: Bool?
    /// Options that few calls have.
    let rare: RareOptions?
  }

  init(
    environment: CallEnvironment,
    choices: ProtocolChoices?,
    method: AnyMethod,
    streamType: StreamType,
    headers: Headers,
    context: CallContext,
    timeout: Duration?,
    waitForReady: Bool?,
    rare: RareOptions?,
    isExplained: Bool,
    inheritance: Inheritance?,
    parser: ResponseParser?,
    writer: RequestWriter
  ) {
    self.environment = environment
    self.choices = choices
    self.method = method
    self.streamType = streamType
    self.headers = headers
    self.context = context
    self.given = Given(
      timeout: timeout?.clamped,
      deadline: timeout.map { environment.executor.now + $0.clamped },
      waitForReady: waitForReady,
      rare: rare
    )
    self.isExplained = isExplained
    self.inheritance = inheritance
    self.parser = parser
    self.writer = writer
    self.rules = nil
  }

  private init(copying other: CallPlan, over environment: CallEnvironment, following rules: FollowedRules?) {
    self.environment = environment
    self.choices = other.choices
    self.method = other.method
    self.streamType = other.streamType
    self.headers = other.headers
    self.context = other.context
    self.given = other.given
    self.isExplained = other.isExplained
    self.inheritance = other.inheritance
    self.parser = other.parser
    self.writer = environment.writers.writer(like: other.writer)
    self.rules = rules
  }

  /// The same call in the protocol of another environment.
  func over(_ environment: CallEnvironment) -> CallPlan {
    environment === self.environment
      ? self : CallPlan(copying: self, over: environment, following: self.rules)
  }

  var info: MethodInfo { self.method.info }
  var logger: Logger { self.environment.logger }
  var taskExecutor: any TaskExecutor { self.environment.taskExecutor }

  var isUnary: Bool { self.streamType == .unary }

  /// The same call with the service's rules for its method.
  ///
  /// - Parameter start: When the call began.
  func following(_ rules: MethodRules, since start: Duration) -> CallPlan {
    var deadline = rules.timeout.map { start + $0 }
    if let own = self.given.deadline, let other = deadline, own <= other { deadline = nil }
    return CallPlan(
      copying: self,
      over: self.environment,
      following: FollowedRules(rules, deadline: deadline)
    )
  }

  /// The time that the call may take; nil for no limit.
  var timeout: Duration? { self.rules?.timeout ?? self.given.timeout }

  /// The time left until the deadline; nil without a deadline. May be negative.
  var remainingTime: Duration? {
    (self.rules?.deadline ?? self.given.deadline).map { $0 - self.environment.executor.now }
  }

  /// Whether the call waits for a server that can be reached.
  var waitsForReady: Bool {
    if let given = self.given.waitForReady { return given }
    return self.environment.settings.waitForReady || self.rules?.method.waitForReady == true
  }

  /// Why the call cannot be made, if it cannot.
  var error: ConnectError? {
    if let error = self.environment.hostError { return error }
    let info = self.info
    guard info.streamType != self.streamType else { return nil }
    return ConnectError(
      code: .invalidArgument,
      message: "\(info.path) is \(info.streamType), and was called as \(self.streamType); "
        + "use the client's function for its kind, or correct its MethodSpec"
    )
  }

  /// The caller's request, without its message.
  func makeRequestHead() -> RequestHead {
    guard let rules = self.rules else {
      return self.environment.makeRequestHead(
        for: self.info,
        headers: self.headers,
        context: self.context,
        timeout: self.given.timeout,
        retryRules: nil,
        authority: self.given.rare?.values.authority
      )
    }
    var context = self.context
    // Hooks pass the inherited deadline on, so that it must be the one that the call follows.
    if rules.deadline != nil, let inherited = context.deadline, let remaining = self.remainingTime {
      context.deadline = inherited.moved(toRemaining: remaining)
    }
    return self.environment.makeRequestHead(
      for: self.info,
      headers: self.headers,
      context: context,
      timeout: self.timeout,
      retryRules: rules.method.retry,
      authority: self.given.rare?.values.authority
    )
  }

  /// How the call hedges; nil if it does not. Inlined: for most calls the first checks decide.
  @inline(__always)
  var hedgingPolicy: HedgingPolicy? {
    guard self.given.rare != nil || self.environment.settings.hedging != nil || self.rules != nil,
      self.isUnary,
      let policy = self.given.rare?.values.hedging ?? self.environment.settings.hedging?(self.info)
        ?? self.rules?.method.hedging,
      policy.applies(to: self.info)
    else { return nil }
    return policy
  }
}

extension Duration? {
  /// Whether no time is left; false without a limit.
  @inline(__always)
  var isUsedUp: Bool { if let self { self <= .zero } else { false } }
}
