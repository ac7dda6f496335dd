internal import NIOCore

/// The errors of responses that have no usable RPC error. They are the same in all protocols.
enum ResponseRules {
  /// The error of a response of which only the HTTP status counts.
  ///
  /// - Parameter body: The beginning of the body, which may explain the error to people.
  static func statusError(_ head: HTTPResponseHead, body: ByteBuffer = ByteBuffer()) -> ConnectError {
    // A success status other than 200 maps to unknown.
    var error = ConnectError(code: Code(httpStatus: head.status), message: HTTPStatus.describe(head.status))
    error.unnamed = .response(text: ResponseText.excerpt(of: body, head))
    return error
  }

  /// The error of a response with status 200 and a content-type that does not match the request.
  static func contentTypeError(code: Code, _ received: String?, expected: String) -> ConnectError {
    let what = received.map { "content-type '\(PeerText.value($0))'" } ?? "no content-type"
    var error = ConnectError(code: code, message: "response has \(what), expected '\(expected)'")
    error.unnamed = .response(text: "")
    return error
  }

  /// The error of a response that broke off with `error`, before its body was complete.
  ///
  /// An error status is more precise than `error`, unless the client itself has ended the call.
  static func brokenOff(_ error: ConnectError, _ head: HTTPResponseHead?) -> ConnectError {
    guard let head, head.status != 200, error.code != .canceled, error.code != .deadlineExceeded else {
      return error
    }
    var result = self.statusError(head)
    result.exception = error
    return result
  }

  /// `error` with the HTTP status of its response, and with the response's headers and trailers as metadata.
  static func complete(
    _ error: ConnectError,
    from head: HTTPResponseHead?,
    headers: Headers? = nil,
    trailers: Headers = Headers()
  ) -> ConnectError {
    guard let head else { return error }
    var error = error
    if error.httpStatus == nil { error.httpStatus = head.status }
    if error.metadata.isEmpty {
      error.metadata = headers ?? head.headers
      error.metadata.append(contentsOf: trailers)
    }
    return error
  }
}
