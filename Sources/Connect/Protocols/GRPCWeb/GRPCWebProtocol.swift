internal import NIOCore

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

  func contentType(codecName: String, isUnary: Bool) -> String { "\(self.baseContentType)+\(codecName)" }

  func envelopesMessages(of streamType: StreamType) -> Bool { true }

  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer {
    let envelope = Envelope.encode(message, flags: isCompressed ? Envelope.compressedFlag : 0)
    return self.isText ? Base64.encode(envelope, alphabet: .standard, isPadded: true) : envelope
  }

  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers {
    var result = headers
    result.reserveCapacity(headers.count + 8)
    // Proxies choose the form of the response by this header, not by the request's.
    if self.isText { result.add(name: "accept", value: request.contentType) }
    result.add(name: "x-grpc-web", value: "1")
    GRPCRequestRules.addHeaders(to: &result, for: request)
    if !result.contains("x-user-agent") { result.add(name: "x-user-agent", value: UserAgent.grpc) }
    return result
  }

  func timeoutField(_ timeout: Duration) -> Headers.Field { GRPCRequestRules.timeoutField(timeout) }

  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int,
    acceptedEncodings: AcceptedEncodings
  ) -> any ResponseDecoder & AnyObject {
    GRPCWebResponseDecoder(
      isText: self.isText,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings
    ).boxed
  }

  private var baseContentType: String { self.isText ? Self.textContentType : Self.contentType }
}
