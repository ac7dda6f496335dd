/// The cancellable waits of a call.
struct CallTimers {
  /// Will end the call.
  var deadline: (any CallTimer)?
  /// Nil unless an interceptor holds the call up.
  var holdWatch: HoldWatch?
  /// Nil unless the service's rules are not known yet.
  var ruleWait: ServiceRules.Wait?

  /// The error of a call whose deadline has passed.
  static func deadlineError(of call: Call) -> ConnectError {
    let plan = call.attempts.plan
    let source = plan.rules?.timeout == nil ? "" : " (the timeout of the service config)"
    let holder = HookHolders(in: call.pipeline).blocking.map { "; \($0) and has not passed it on" } ?? ""
    return ConnectError(
      code: .deadlineExceeded,
      message: "\(plan.info.path) did not complete within \(plan.timeout ?? .zero)\(source)\(holder)"
    )
  }
}
