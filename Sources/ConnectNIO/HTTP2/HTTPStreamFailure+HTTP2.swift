internal import CNghttp2
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
  /// The connection was gone, or going, when the stream was to start.
  static var noConnection: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(code: .unavailable, message: "the HTTP/2 connection takes no more streams"),
      isUnprocessed: true
    )
  }

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

  /// libnghttp2 could not send the request's HEADERS. The peer has not seen the request. A request that is too large
  /// would not get through elsewhere either.
  static func notSent(libraryError: Int32, size: Int) -> HTTPStreamFailure {
    switch libraryError {
    case NGHTTP2_ERR_FRAME_SIZE_ERROR.rawValue:
      return HTTPStreamFailure(
        error: ConnectError(
          code: .resourceExhausted,
          message: """
            the request's header list of \(size) bytes is too large for an HTTP/2 header block, \
            which has about \(HTTP2Session.maximumHeaderBlock) bytes at most
            """
        )
      )
    case NGHTTP2_ERR_START_STREAM_NOT_ALLOWED.rawValue, NGHTTP2_ERR_SESSION_CLOSING.rawValue,
      NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue:
      return .noConnection
    default:
      let reason = nghttp2_strerror(libraryError).map { String(cString: $0) } ?? "error \(libraryError)"
      return HTTPStreamFailure(
        error: ConnectError(code: .internalError, message: "the request could not be sent: \(reason)")
      )
    }
  }

  /// The stream was closed with `errorCode` before its response was complete.
  init(closing stream: HTTP2Stream, errorCode: HTTP2ErrorCode, goAway: HTTP2GoAway?) {
    if stream.notSentError != 0 {
      self = .notSent(libraryError: stream.notSentError, size: stream.requestFieldsSize)
      return
    }
    let isRefused = errorCode == .refusedStream
    let message: String
    if stream.isResetByPeer {
      message = "the server reset the stream: \(errorCode)"
    } else if isRefused, let goAway, stream.id > goAway.lastStreamID {
      message = "the server is going away and did not process the request (GOAWAY, \(goAway))"
    } else {
      message = "the response breaks HTTP/2: \(errorCode)"
    }
    var error = ConnectError(
      code: Code(http2ErrorCode: errorCode.rawValue),
      message: message,
      httpStatus: stream.response == .head ? nil : stream.status
    )
    if stream.isResetByPeer, stream.response == .head, [.internalError, .protocolError].contains(errorCode) {
      error.unnamed = .reset
    }
    self.init(
      error: error,
      isUnprocessed: isRefused && stream.response == .head
    )
  }
}
