internal import NIOCore

extension GRPCWebProtocol {
  func envelopesMessages(of streamType: StreamType) -> Bool { true }

  var sendsBase64: Bool { self.isText }

  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer {
    let envelope = Envelope.encode(message, flags: isCompressed ? Envelope.compressedFlag : 0)
    return self.isText ? Base64.encode(envelope, alphabet: .standard, isPadded: true) : envelope
  }

  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers {
    var result = Headers()
    result.reserveCapacity(headers.count + 8)
    // Proxies choose the form of the response by this header, not by the request's.
    if self.isText { result.add(name: "accept", value: request.contentType) }
    result.add(name: "x-grpc-web", value: "1")
    GRPCRequestRules.addHeaders(to: &result, for: request, beside: headers)
    if !headers.contains("x-user-agent") { result.add(name: "x-user-agent", value: UserAgent.grpc) }
    result.append(contentsOf: headers)
    return result
  }

  func timeoutField(_ timeout: Duration) -> Headers.Field { GRPCRequestRules.timeoutField(timeout) }
}
