internal import Logging

/// What a call is from its beginning on: nothing of it changes.
final class CallPlan: HookEnvironment {
  let environment: CallEnvironment
  /// The protocols of a client that may choose; nil if the client speaks one.
  let choices: ProtocolChoices?
  let method: AnyMethod
  /// How the caller calls the method.
  let streamType: StreamType
  /// The metadata that the caller sends.
  let headers: Headers
  /// All that the call carries along, with what it has inherited.
  let context: CallContext
  /// The time that the call may take; nil for no limit.
  let timeout: Duration?
  /// How the caller wants this call to hedge; nil for what the client says.
  let hedging: HedgingPolicy?
  /// Whether the call waits for a server that can be reached.
  let waitForReady: Bool
  /// Whether somebody looks closely, so that metrics say how messages were compressed.
  let isExplained: Bool
  /// What is bound around hooks; nil if nothing was there to be inherited.
  let inheritance: Inheritance?
  let writer: RequestWriter
  /// On the executor's clock.
  private let deadline: Duration?

  init(
    environment: CallEnvironment,
    choices: ProtocolChoices?,
    method: AnyMethod,
    streamType: StreamType,
    headers: Headers,
    context: CallContext,
    timeout: Duration?,
    hedging: HedgingPolicy?,
    waitForReady: Bool,
    isExplained: Bool,
    inheritance: Inheritance?,
    writer: RequestWriter
  ) {
    self.environment = environment
    self.choices = choices
    self.method = method
    self.streamType = streamType
    self.headers = headers
    self.context = context
    self.timeout = timeout?.clamped
    self.hedging = hedging
    self.waitForReady = waitForReady
    self.isExplained = isExplained
    self.inheritance = inheritance
    self.writer = writer
    self.deadline = timeout.map { environment.executor.now + $0.clamped }
  }

  private init(copying other: CallPlan, over environment: CallEnvironment) {
    self.environment = environment
    self.choices = other.choices
    self.method = other.method
    self.streamType = other.streamType
    self.headers = other.headers
    self.context = other.context
    self.timeout = other.timeout
    self.hedging = other.hedging
    self.waitForReady = other.waitForReady
    self.isExplained = other.isExplained
    self.inheritance = other.inheritance
    self.writer = environment.writers.writer(like: other.writer)
    self.deadline = other.deadline
  }

  /// The same call in the protocol of another environment.
  func over(_ environment: CallEnvironment) -> CallPlan {
    environment === self.environment ? self : CallPlan(copying: self, over: environment)
  }

  var info: MethodInfo { self.method.info }
  var logger: Logger { self.environment.logger }
  var taskExecutor: any TaskExecutor { self.environment.taskExecutor }

  var isUnary: Bool { self.streamType == .unary }

  /// What is left until the deadline; nil if there is none. May be less than zero.
  var remainingTime: Duration? {
    self.deadline.map { $0 - self.environment.executor.now }
  }

  /// Why the call cannot be made, if it cannot.
  var error: ConnectError? {
    if let error = self.environment.hostError { return error }
    let info = self.info
    guard info.streamType != self.streamType else { return nil }
    return ConnectError(
      code: .invalidArgument,
      message: "\(info.path) is \(info.streamType), and was called as \(self.streamType)"
    )
  }

  /// The request that the caller made, but for its message.
  func makeRequestHead() -> RequestHead {
    self.environment.makeRequestHead(
      for: self.info,
      headers: self.headers,
      context: self.context,
      timeout: self.timeout
    )
  }

  /// Whether somebody wants the call to hedge, as far as that can be told at once.
  @inline(__always)
  var mayHedge: Bool { self.hedging != nil || self.environment.settings.hedging != nil }

  /// How the call hedges; nil if it does not.
  var hedgingPolicy: HedgingPolicy? {
    guard self.isUnary,
      let policy = self.hedging ?? self.environment.settings.hedging?(self.info),
      policy.applies(to: self.info)
    else { return nil }
    return policy
  }
}
