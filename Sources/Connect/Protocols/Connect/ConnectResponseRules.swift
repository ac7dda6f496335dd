internal import NIOCore

/// What unary responses and streams have in common: which heads are acceptable, and what an error gets from the
/// response around it.
enum ConnectResponseRules {
  /// The problem with the content-type of a response with status 200, if it has one.
  ///
  /// Another codec of the Connect protocol means `internal`, anything else `unknown`, as in connect-go.
  static func contentTypeError(
    of headers: Headers,
    expected: String,
    streamType: StreamType
  ) -> ConnectError? {
    guard let received = headers.first("content-type") else {
      return ConnectError(code: .unknown, message: "response has no content-type, expected '\(expected)'")
    }
    if MediaType.matches(received, expected) { return nil }
    return ConnectError(
      code: self.isConnect(MediaType.essence(received), streamType: streamType) ? .internalError : .unknown,
      message: "response has content-type '\(received)', expected '\(expected)'"
    )
  }

  /// The error of a response whose body is in an encoding that was not asked for; nil if it is in none.
  static func encodingError(of headers: Headers, header name: String) -> ConnectError? {
    guard let encoding = headers.first(name), encoding.asciiLowercased != "identity", !encoding.isEmpty else {
      return nil
    }
    return ConnectError(code: .internalError, message: "response has unknown \(name) '\(encoding)'")
  }

  /// The error of a response that has no usable Connect error: its HTTP status is all there is.
  static func statusError(_ status: Int) -> ConnectError {
    // A status that is no error but not 200 either maps to unknown like all others.
    ConnectError(code: Code(httpStatus: status), message: "HTTP status \(status)")
  }

  /// The error of a complete response with another status than 200.
  ///
  /// An error in JSON says what it is; where it has no usable code, the status says that, and the message is
  /// kept.
  static func responseError(_ head: HTTPResponseHead, body: ByteBuffer) -> ConnectError {
    let fallback = self.statusError(head.status)
    guard let contentType = head.headers.first("content-type"),
      MediaType.matches(contentType, "application/json")
    else { return fallback }
    if let error = self.encodingError(of: head.headers, header: "content-encoding") { return error }
    guard let json = ConnectErrorJSON.parse(body) else { return fallback }
    var error = json.error(fallback: fallback.code)
    if json.code == nil, error.message == nil { error.message = fallback.message }
    return error
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

  private static func isConnect(_ type: String, streamType: StreamType) -> Bool {
    let isStream = type.hasPrefix(ConnectProtocol.streamContentTypePrefix)
    if streamType != .unary { return isStream }
    return type.hasPrefix(ConnectProtocol.unaryContentTypePrefix) && !isStream
      && !type.hasPrefix("application/grpc")
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
