/// What all protocols make of a response that has no usable RPC error.
enum ResponseRules {
  /// The error of a response of which the HTTP status is all that counts.
  static func statusError(_ status: Int) -> ConnectError {
    // A status that is no error but not 200 either maps to unknown like all others.
    ConnectError(code: Code(httpStatus: status), message: HTTPStatus.describe(status))
  }

  /// The error of a response with an error status that broke off before its body was complete.
  ///
  /// That the call failed is known, and so is the status; only the end of one's own patience says more.
  static func brokenOff(_ error: ConnectError, status: Int) -> ConnectError {
    if error.code == .canceled || error.code == .deadlineExceeded { return error }
    var result = self.statusError(status)
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
