internal import Connect

extension ConnectError {
  /// Bytes of the peer that are no message.
  @inline(never)
  static func undecodable(_ message: String, code: Code = .internalError) -> ConnectError {
    ConnectError(code: code, message: "cannot decode: \(message)")
  }

  /// A message of the caller that cannot be sent.
  @inline(never)
  static func unencodable(_ message: String) -> ConnectError {
    ConnectError(code: .internalError, message: "cannot encode: \(message)")
  }

  /// A use of the module that does not fit the message.
  static func misuse(_ message: String) -> ConnectError {
    ConnectError(code: .invalidArgument, message: message)
  }
}
