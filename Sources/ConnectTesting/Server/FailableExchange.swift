package import Connect

/// An exchange that can end with any failure, since it is in memory.
package protocol FailableExchange: ServerExchange {
  /// Ends the stream with a failure. May be called from anywhere.
  func failLater(_ failure: HTTPStreamFailure)
}

extension HTTPStreamFailure {
  /// The server has reset the stream.
  package static func reset(code: UInt32) -> HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: Code(http2ErrorCode: code),
        message: "the server reset the stream with HTTP/2 error code \(code)"
      )
    )
  }
}
