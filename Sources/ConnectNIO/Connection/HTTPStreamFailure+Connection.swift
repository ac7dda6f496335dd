package import Connect

/// Responses with a status of 1xx, which come before the response (RFC 9110, section 15.2). They are left out.
package enum InformationalResponses {
  /// How many of them a call takes. Servers send a few; a peer must not keep a call busy with them.
  package static let limit = 100

  /// The error of a call that gets more.
  package static var error: ConnectError {
    ConnectError(
      code: .internalError,
      message: "the server sent more than \(self.limit) informational responses (1xx), and no other"
    )
  }
}

extension ConnectError {
  /// The peer broke the protocol, which has ended the connection. This is the error of a call that had no part in it:
  /// the call may be made again over another connection.
  ///
  /// - Parameter cause: The error of the connection.
  package static func brokenElsewhere(_ cause: ConnectError) -> ConnectError {
    ConnectError(
      code: .unavailable,
      message: "\(cause.message ?? "the connection broke"), but not in the response to this call",
      exception: cause
    )
  }
}

extension HTTPStreamFailure {
  /// The response's header or trailer list has `size` bytes, where `limit` are allowed.
  package static func headerListTooLarge(size: Int, limit: Int) -> HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: .resourceExhausted,
        message:
          "the response's header list of \(size) bytes is over the limit of \(limit) bytes (maxHeaderListSize)"
      )
    )
  }
}
