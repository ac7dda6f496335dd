/// The errors that a call itself finds. Each message names the method.
extension ConnectError {
  static func tooMuchToReplay(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message:
        "\(method.path) has sent more request messages than are kept for another attempt; "
        + "see ProtocolClientConfig.Retries.maximumReplayBytes"
    )
  }

  static func retriesUsedUp(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "\(method.path) has made all its retries; see ProtocolClientConfig.Retries.maximumRetries"
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
      message: "\(method.path) has \(maximum) messages waiting to be sent, which is the limit; "
        + "wait until send completes, or raise ProtocolClientConfig.Limits.maximumQueuedMessages"
    )
  }

  /// All references that could continue the call were released.
  static func abandoned(_ method: MethodInfo) -> ConnectError {
    ConnectError(
      code: .internalError,
      message:
        "nothing can continue or end \(method.path): an interceptor or the transport let go of it, and it has "
        + "neither a deadline nor a handle"
    )
  }
}
