extension HookHolders {
  /// The error of a call whose hook has released its `proceed` without calling it; nil if no hook waits there.
  func abandonment(of method: MethodInfo, at place: Visit.Place, _ number: Int) -> ConnectError? {
    self.holder(of: place, number).map { holder in
      ConnectError(
        code: .internalError,
        message: "\(holder) of \(method.path), and let go of proceed without calling it"
      )
    }
  }

  /// The error of a call whose deadline has passed. It names the interceptor that holds the call up.
  static func deadlineExceeded(_ call: Call) -> ConnectError {
    let plan = call.attempts.plan
    let rules = plan.rules
    let source =
      rules?.timeout == nil ? "" : " (the timeout of the \(rules?.method.timeoutSource ?? "service"))"
    let holder = HookHolders(in: call.pipeline).blocking.map { "; \($0) and has not passed it on" } ?? ""
    return ConnectError(
      code: .deadlineExceeded,
      message: "\(plan.info.path) did not complete within \(plan.timeout ?? .zero)\(source)\(holder)"
    )
  }
}
