/// The Connect protocol, <https://connectrpc.com/docs/protocol>.
///
/// Unary calls are plain HTTP: the message is the body, errors are JSON with an HTTP status. Streams are
/// enveloped messages with status 200 and end with a JSON message. HTTP trailers mean nothing.
struct ConnectProtocol: WireProtocol {
  static let unaryContentTypePrefix = "application/"
  static let streamContentTypePrefix = "application/connect+"

  var name: String { "connect" }

  var requiresHTTP2: Bool { false }

  var supportsGET: Bool { true }

  /// All of `connect-` is reserved; `grpc-` is too, since proxies translate between the protocols.
  func owns(headerName name: String) -> Bool {
    switch name.utf8.first {
    case UInt8(ascii: "a"): name == "accept-encoding"
    case UInt8(ascii: "c"): name == "content-type" || name == "content-encoding" || name.hasPrefix("connect-")
    case UInt8(ascii: "g"): name.hasPrefix("grpc-")
    default: false
    }
  }

  func contentType(codecName: String, isUnary: Bool) -> String {
    (isUnary ? Self.unaryContentTypePrefix : Self.streamContentTypePrefix) + codecName
  }

  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int,
    acceptedEncodings: AcceptedEncodings,
    buffers: BodyBuffers?
  ) -> ResponseReader {
    if streamType == .unary {
      ConnectUnaryDecoder(
        contentType: contentType,
        maximumMessageSize: maximumMessageSize,
        acceptedEncodings: acceptedEncodings,
        buffers: buffers
      ).makeResponse()
    } else {
      ConnectStreamDecoder(
        contentType: contentType,
        maximumMessageSize: maximumMessageSize,
        maximumMetadataSize: maximumMetadataSize,
        acceptedEncodings: acceptedEncodings,
        buffers: buffers
      ).makeResponse()
    }
  }
}

extension ConnectProtocol {
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
      code: self.isContentType(MediaType.essence(received), of: streamType) ? .internalError : .unknown,
      received,
      expected: expected
    )
  }

  private static func isContentType(_ type: String, of streamType: StreamType) -> Bool {
    let isStream = type.hasPrefix(self.streamContentTypePrefix)
    if streamType != .unary { return isStream }
    return type.hasPrefix(self.unaryContentTypePrefix) && !isStream
      && !type.hasPrefix("application/grpc")
  }
}
