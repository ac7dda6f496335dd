/// gRPC-Web, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>: gRPC for HTTP of any version, with
/// trailers in the body. In text mode the body is base64.
struct GRPCWebProtocol: WireProtocol {
  static let contentType = "application/grpc-web"
  static let textContentType = "application/grpc-web-text"

  let isText: Bool

  var name: String { self.isText ? "grpc-web-text" : "grpc-web" }

  var requiresHTTP2: Bool { false }

  func owns(headerName name: String) -> Bool {
    GRPCRequestRules.owns(headerName: name) || name == "x-grpc-web" || (self.isText && name == "accept")
  }

  /// Always with the codec: unlike gRPC, the specification says that senders should always name it.
  func contentType(codecName: String, isUnary: Bool) -> String { "\(self.baseContentType)+\(codecName)" }

  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int,
    acceptedEncodings: AcceptedEncodings,
    buffers: BodyBuffers?
  ) -> ResponseReader {
    GRPCWebResponseDecoder(
      isText: self.isText,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings,
      buffers: buffers
    ).makeResponse()
  }

  private var baseContentType: String { self.isText ? Self.textContentType : Self.contentType }
}
