internal import CNghttp2
internal import Connect

extension HTTPStreamFailure {
  /// The connection was gone, or going, when the stream was to start.
  static var noConnection: HTTPStreamFailure {
    HTTPStreamFailure(
      error: ConnectError(code: .unavailable, message: "the HTTP/2 connection takes no more streams"),
      isUnprocessed: true
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
            which has about \(NGHTTP2Session.maximumHeaderBlock) bytes at most
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
