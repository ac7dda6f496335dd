/// The errors that a call itself finds. Each message names the method.
extension ConnectError {
  static func tooMuchToReplay(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "\(method.path) has sent more request messages than are kept for another attempt"
    )
  }

  static func retriesUsedUp(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "\(method.path) has made as many attempts as it may"
    )
  }

  /// The response has ended, so that the server no longer reads messages.
  static func streamEnded(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: "\(method.path) has ended; the end of its results says how"
    )
  }

  static func requestFinished(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: "the request of \(method.path) was finished before this message was sent"
    )
  }

  static func tooManyQueuedMessages(_ maximum: Int, method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "\(method.path) has \(maximum) messages waiting to be sent, which is the limit"
    )
  }

  /// All references that could continue the call were released.
  static func abandoned(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "nobody is left who could go on with \(method.path), or end it"
    )
  }
}
