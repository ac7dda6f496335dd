/// gRPC over HTTP/2, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
///
/// All messages are enveloped, and all calls, unary ones too, end with a status in the trailers.
struct GRPCProtocol: WireProtocol {
  static let contentType = "application/grpc"

  var name: String { "grpc" }

  var requiresHTTP2: Bool { true }

  func owns(headerName name: String) -> Bool { GRPCRequestRules.owns(headerName: name) }

  /// The short form for protobuf, which all servers know: some front ends answer 404 to any other.
  func contentType(codecName: String, isUnary: Bool) -> String {
    codecName == "proto" ? Self.contentType : "\(Self.contentType)+\(codecName)"
  }

  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int,
    acceptedEncodings: AcceptedEncodings,
    buffers: BodyBuffers?
  ) -> ResponseReader {
    GRPCResponseDecoder(
      baseContentType: Self.contentType,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings,
      buffers: buffers
    ).makeResponse()
  }
}

extension GRPCProtocol {
  /// The problem with the content-type of a response with status 200, if it has one.
  ///
  /// Another codec of the same protocol means `internal`, anything else `unknown`, as in connect-go. The base alone means
  /// `+proto`, in a request and in a response.
  ///
  /// - Parameter base: The content-type without a codec, of gRPC or of gRPC-Web.
  static func contentTypeError(of headers: Headers, base: String, expected: String) -> ConnectError? {
    guard let received = headers.first(lowercased: "content-type") else {
      return ResponseRules.contentTypeError(code: .unknown, nil, expected: expected)
    }
    if received == expected || (self.meansProto(received, base) && self.meansProto(expected, base)) {
      return nil
    }
    let essence = MediaType.essence(received)
    if self.full(essence, base: base) == self.full(MediaType.essence(expected), base: base) { return nil }
    return ResponseRules.contentTypeError(
      code: essence == base || essence.hasPrefix("\(base)+") ? .internalError : .unknown,
      received,
      expected: expected
    )
  }

  /// Whether `contentType`, as most peers write it, is the one of protobuf. Without an allocation.
  private static func meansProto(_ contentType: String, _ base: String) -> Bool {
    contentType == base
      || (contentType.utf8.count == base.utf8.count + 6 && contentType.hasPrefix(base)
        && contentType.hasSuffix("+proto"))
  }

  private static func full(_ essence: String, base: String) -> String {
    essence == base ? "\(base)+proto" : essence
  }
}
