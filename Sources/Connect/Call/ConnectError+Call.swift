/// The errors that a call itself finds and that name more than the method.
extension ConnectError {
  /// A hook has released its `proceed` without calling it.
  static func abandoned(_ method: MethodInfo, by holder: HookHolder) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "\(holder) of \(method.path), and let go of proceed without calling it"
    )
  }

  /// The deadline of a call has passed.
  static func deadlineExceeded(_ call: Call) -> ConnectError {
    let plan = call.attempts.plan
    let source = plan.rules?.timeout == nil ? "" : " (the timeout of the service config)"
    let holder = HookHolders(in: call.pipeline).blocking.map { "; \($0) and has not passed it on" } ?? ""
    return ConnectError(
      code: .deadlineExceeded,
      message: "\(plan.info.path) did not complete within \(plan.timeout ?? .zero)\(source)\(holder)"
    )
  }

  static func unansweredNotModified(_ response: HTTPResponse) -> ConnectError {
    ConnectError(
      code: .unknown,
      message: "\(HTTPStatus.describe(304)), and no interceptor had a response to give in its place",
      metadata: response.headers,
      httpStatus: 304
    )
  }
}
