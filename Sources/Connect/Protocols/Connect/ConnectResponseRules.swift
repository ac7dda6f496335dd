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
      return ResponseRules.contentTypeError(code: .unknown, nil, expected: expected)
    }
    if MediaType.matches(received, expected) { return nil }
    return ResponseRules.contentTypeError(
      code: self.isConnect(MediaType.essence(received), streamType: streamType) ? .internalError : .unknown,
      received,
      expected: expected
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
    guard let contentType = head.headers.first(lowercased: "content-type"),
      MediaType.matches(contentType, "application/json")
    else { return ResponseRules.statusError(head, body: body) }
    let encoding: ResponseEncoding
    do throws(ConnectError) {
      encoding = try acceptedEncodings.encoding(of: head.headers, header: "content-encoding")
    } catch {
      return error
    }
    // One that does not decompress is one that does not parse: the status says what there is to say.
    guard let text = try? encoding.decompress(body, maximumSize: ConnectErrorJSON.maximumSize),
      let json = ConnectErrorJSON.parse(text)
    else { return ResponseRules.statusError(head, body: body) }
    guard json.code != nil || json.message != nil else {
      var error = ResponseRules.statusError(head, body: body)
      error.details = json.details
      return error
    }
    return json.error(fallback: Code(httpStatus: head.status))
  }

  private static func isConnect(_ type: String, streamType: StreamType) -> Bool {
    let isStream = type.hasPrefix(ConnectProtocol.streamContentTypePrefix)
    if streamType != .unary { return isStream }
    return type.hasPrefix(ConnectProtocol.unaryContentTypePrefix) && !isStream
      && !type.hasPrefix("application/grpc")
  }
}
