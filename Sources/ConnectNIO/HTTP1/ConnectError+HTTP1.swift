internal import Connect

extension ConnectError {
  /// The head of a response has more than `limit` bytes, whatever of it counts as fields.
  static func headTooLarge(_ limit: Int, headerListLimit: Int) -> ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: """
        the response's head has more than \(limit) bytes, the limit of its header list is \(headerListLimit) \
        (maxHeaderListSize)
        """
    )
  }

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
