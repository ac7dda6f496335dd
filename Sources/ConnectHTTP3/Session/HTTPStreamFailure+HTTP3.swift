internal import CNghttp3
internal import Connect

extension HTTPStreamFailure {
  /// The connection was gone, or going, when the stream was to start.
  static var noConnection: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(code: .unavailable, message: "the HTTP/3 connection takes no more streams"),
      isUnprocessed: true
    )
  }

  /// The server has said by 421 that it does not serve the origin.
  static var misdirected: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: .unavailable,
        message: "the server does not serve this host over HTTP/3 (421 Misdirected Request)",
        httpStatus: 421
      ),
      isUnprocessed: true
    )
  }

  /// The server does not process the request as early data (RFC 8470, section 5.2).
  static var tooEarly: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: .unavailable,
        message: "the server does not take the request as early data (425 Too Early)",
        httpStatus: 425
      ),
      isUnprocessed: true
    )
  }

  /// The server has said by GOAWAY that it did not process the request.
  static var goAway: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: .unavailable,
        message: "the server is going away and did not process the request (GOAWAY)"
      ),
      isUnprocessed: true
    )
  }

  /// libnghttp3 refuses the request.
  static func notSent(libraryError: Int32) -> HTTPStreamFailure {
    if libraryError == NGHTTP3_ERR_CONN_CLOSING { return .noConnection }
    let reason = LibraryText.http(libraryError)
    return HTTPStreamFailure(
      error: ConnectError(code: .internalError, message: "the request could not be sent: \(reason)")
    )
  }

  /// The response is not one of HTTP (RFC 9114, section 4.1.2).
  static func malformed(_ stream: HTTP3Stream) -> HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: .internalError,
        message: "the response breaks HTTP/3: \(HTTP3ErrorCode.messageError)",
        httpStatus: stream.response.state == .head ? nil : stream.response.status
      )
    )
  }

  /// libnghttp3 does not take names and values of any size.
  static var headerTooLarge: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(
        code: .resourceExhausted,
        message: "the response has a header with a name of more than 256 or a value of more than 65,536 bytes"
      )
    )
  }

  /// The peer has reset the stream before its response was complete.
  init(resetting stream: HTTP3Stream, _ code: HTTP3ErrorCode) {
    var error = ConnectError(
      code: Code(code),
      message: "the server reset the stream: \(code)",
      httpStatus: stream.response.state == .head ? nil : stream.response.status
    )
    if stream.response.state == .head, [.internalError, .generalProtocolError].contains(code) {
      error.unnamed = .reset
    }
    self.init(error: error, isUnprocessed: code == .requestRejected && stream.response.state == .head)
  }
}
