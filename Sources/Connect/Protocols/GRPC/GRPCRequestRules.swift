/// What requests of gRPC and gRPC-Web have in common.
enum GRPCRequestRules {
  /// All of `grpc-` is reserved, and what says how the body is coded.
  static func owns(headerName name: String) -> Bool {
    switch name.utf8.first {
    case UInt8(ascii: "a"): name == "accept-encoding"
    case UInt8(ascii: "c"): name == "content-type" || name == "content-encoding"
    case UInt8(ascii: "g"): name.hasPrefix("grpc-")
    default: false
    }
  }

  static func timeoutField(_ timeout: Duration) -> Headers.Field {
    Headers.Field(lowercasedName: "grpc-timeout", value: GRPCTimeout.encode(timeout))
  }

  static func addHeaders(to headers: inout Headers, for request: WireRequest) {
    headers.add(name: "content-type", value: request.contentType)
    if let encoding = request.encoding { headers.add(name: "grpc-encoding", value: encoding) }
    if let accepted = request.acceptedEncodings.headerValue {
      headers.add(name: "grpc-accept-encoding", value: accepted)
    }
    if let timeout = request.timeout { headers.append(self.timeoutField(timeout)) }
    UserAgent.addIfMissing(UserAgent.grpc, to: &headers)
  }
}
