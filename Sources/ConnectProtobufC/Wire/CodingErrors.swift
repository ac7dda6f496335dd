internal import Connect

extension ConnectError {
  /// The peer's bytes are not a valid message.
  @inline(never)
  static func undecodable(_ message: String, code: Code = .internalError) -> ConnectError {
    ConnectError(code: code, message: "cannot decode: \(message)")
  }

  /// The caller's message cannot be sent.
  @inline(never)
  static func unencodable(_ message: String) -> ConnectError {
    ConnectError(code: .internalError, message: "cannot encode: \(message)")
  }

  /// The caller used the module in a way that does not fit the message.
  static func misuse(_ message: String) -> ConnectError {
    ConnectError(code: .invalidArgument, message: message)
  }
}
