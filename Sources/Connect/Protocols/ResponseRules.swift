internal import NIOCore

/// What all protocols make of a response that has no usable RPC error.
enum ResponseRules {
  /// The error of a response of which the HTTP status is all that counts.
  ///
  /// - Parameter body: What has come of the body, in which people may have been told more.
  static func statusError(_ head: HTTPResponseHead, body: ByteBuffer = ByteBuffer()) -> ConnectError {
    // A status that is no error but not 200 either maps to unknown like all others.
    var error = ConnectError(code: Code(httpStatus: head.status), message: HTTPStatus.describe(head.status))
    error.unnamed = .response(text: ResponseText.excerpt(of: body, head))
    return error
  }

  /// The error of a response with status 200 whose content-type shows that it is no answer to the request.
  static func contentTypeError(code: Code, _ received: String?, expected: String) -> ConnectError {
    let what = received.map { "content-type '\($0)'" } ?? "no content-type"
    var error = ConnectError(code: code, message: "response has \(what), expected '\(expected)'")
    error.unnamed = .response(text: "")
    return error
  }

  /// The error of a response with an error status that broke off before its body was complete.
  ///
  /// That the call failed is known, and so is the status; only the end of one's own patience says more.
  static func brokenOff(_ error: ConnectError, _ head: HTTPResponseHead) -> ConnectError {
    if error.code == .canceled || error.code == .deadlineExceeded { return error }
    var result = self.statusError(head)
    result.exception = error
    return result
  }
}

extension ConnectError {
  /// The same error with what is known of the response around it: the HTTP status, and headers and trailers as
  /// metadata.
  func inResponse(_ head: HTTPResponseHead?, headers: Headers? = nil, trailers: Headers = Headers()) -> Self {
    guard let head else { return self }
    var error = self
    if error.httpStatus == nil { error.httpStatus = head.status }
    if error.metadata.isEmpty {
      error.metadata = headers ?? head.headers
      error.metadata.append(contentsOf: trailers)
    }
    return error
  }
}
