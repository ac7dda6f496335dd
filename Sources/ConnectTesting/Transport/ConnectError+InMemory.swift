internal import Connect

extension ConnectError {
  static let clientIsGone = ConnectError(code: .canceled, message: "the client has gone away")

  static func misuse(_ what: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: what)
  }
}
