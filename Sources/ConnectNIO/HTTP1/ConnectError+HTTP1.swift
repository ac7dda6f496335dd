internal import Connect

extension ConnectError {
  /// The peer does not speak HTTP/1.1, or does so wrongly.
  static func invalidHTTP1(
    _ peer: String,
    _ reason: String,
    _ cause: (any Swift.Error)? = nil
  ) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "\(peer) sent something that is not valid HTTP/1.1: \(reason)",
      exception: cause
    )
  }
}
