internal import NIOCore

/// What unary responses and streams have in common: which heads are acceptable, and what an error response says.
enum ConnectResponseRules {
  /// The problem with the content-type of a response with status 200, if it has one.
  ///
  /// Another codec of the Connect protocol means `internal`, anything else `unknown`, as in connect-go.
  static func contentTypeError(
    of headers: Headers,
    expected: String,
    streamType: StreamType
  ) -> ConnectError? {
    guard let received = headers.first(lowercased: "content-type") else {
      return ConnectError(code: .unknown, message: "response has no content-type, expected '\(expected)'")
    }
    if MediaType.matches(received, expected) { return nil }
    return ConnectError(
      code: self.isConnect(MediaType.essence(received), streamType: streamType) ? .internalError : .unknown,
      message: "response has content-type '\(received)', expected '\(expected)'"
    )
  }

  /// The error of a complete response with another status than 200.
  ///
  /// An error in JSON says what it is; where it has no usable code, the status says that, and the message is
  /// kept.
  static func responseError(
    _ head: HTTPResponseHead,
    body: ByteBuffer,
    acceptedEncodings: AcceptedEncodings
  ) -> ConnectError {
    let fallback = ResponseRules.statusError(head.status)
    guard let contentType = head.headers.first(lowercased: "content-type"),
      MediaType.matches(contentType, "application/json")
    else { return fallback }
    let encoding: ResponseEncoding
    do throws(ConnectError) {
      encoding = try acceptedEncodings.encoding(of: head.headers, header: "content-encoding")
    } catch {
      return error
    }
    // One that does not decompress is one that does not parse: the status says what there is to say.
    guard let text = try? encoding.decompress(body, maximumSize: ConnectErrorJSON.maximumSize),
      let json = ConnectErrorJSON.parse(text)
    else { return fallback }
    var error = json.error(fallback: fallback.code)
    if json.code == nil, error.message == nil { error.message = fallback.message }
    return error
  }

  private static func isConnect(_ type: String, streamType: StreamType) -> Bool {
    let isStream = type.hasPrefix(ConnectProtocol.streamContentTypePrefix)
    if streamType != .unary { return isStream }
    return type.hasPrefix(ConnectProtocol.unaryContentTypePrefix) && !isStream
      && !type.hasPrefix("application/grpc")
  }
}
