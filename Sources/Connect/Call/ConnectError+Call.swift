/// The errors that a call itself finds and that name more than the method.
extension ConnectError {
  /// A hook has released its `proceed` without calling it.
  static func abandoned(_ method: MethodInfo, by holder: HookHolder) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "\(holder) of \(method.path), and let go of proceed without calling it"
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
