internal import Connect

extension ConnectError {
  static func connectionLost(_ peer: String) -> ConnectError {
    ConnectError(
      code: .unavailable,
      message: "the connection to \(peer) was lost before the request was sent"
    )
  }

  static var clientShutDown: ConnectError {
    ConnectError(code: .unavailable, message: "the HTTP client was shut down")
  }
}
