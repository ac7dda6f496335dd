internal import NIOCore

/// gRPC over HTTP/2, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
///
/// All messages are enveloped, and all calls, unary ones too, end with a status in the trailers.
struct GRPCProtocol: WireProtocol {
  static let contentType = "application/grpc"

  var name: String { "grpc" }

  var requiresHTTP2: Bool { true }

  func owns(headerName name: String) -> Bool { GRPCRequestRules.owns(headerName: name) }

  func contentType(codecName: String, isUnary: Bool) -> String { "\(Self.contentType)+\(codecName)" }

  func envelopesMessages(of streamType: StreamType) -> Bool { true }

  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer {
    Envelope.encode(message, flags: isCompressed ? Envelope.compressedFlag : 0)
  }

  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers {
    var result = headers
    result.reserveCapacity(headers.count + 6)
    result.add(name: "te", value: "trailers")
    GRPCRequestRules.addHeaders(to: &result, for: request)
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
    GRPCResponseDecoder(
      baseContentType: Self.contentType,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings
    ).boxed
  }
}
