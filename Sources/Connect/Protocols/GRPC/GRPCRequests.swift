internal import NIOCore

extension GRPCProtocol {
  func envelopesMessages(of streamType: StreamType) -> Bool { true }

  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer {
    Envelope.encode(message, flags: isCompressed ? Envelope.compressedFlag : 0)
  }

  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers {
    var result = Headers()
    result.reserveCapacity(headers.count + 6)
    result.add(name: "te", value: "trailers")
    GRPCRequestRules.addHeaders(to: &result, for: request, beside: headers)
    result.append(contentsOf: headers)
    return result
  }

  func timeoutField(_ timeout: Duration) -> Headers.Field { GRPCRequestRules.timeoutField(timeout) }
}

/// What requests of gRPC and gRPC-Web have in common.
enum GRPCRequestRules {
  /// All of `grpc-` is reserved, and so are the headers that say how the body is coded.
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

  static func addHeaders(to headers: inout Headers, for request: WireRequest, beside given: Headers) {
    headers.add(name: "content-type", value: request.contentType)
    if let encoding = request.encoding { headers.add(name: "grpc-encoding", value: encoding) }
    if let accepted = request.acceptedEncodings.headerValue {
      headers.add(name: "grpc-accept-encoding", value: accepted)
    }
    if let timeout = request.timeout { headers.append(self.timeoutField(timeout)) }
    UserAgent.add(UserAgent.grpc, to: &headers, unlessIn: given)
  }
}

/// The value of `grpc-timeout`: at most eight digits and a unit.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>
enum GRPCTimeout {
  private static let maximumValue: Int128 = 99_999_999
  private static let attosecondsPerNanosecond: Int128 = 1_000_000_000
  /// The units, finest first, each with its size in the unit before.
  private static let units: [(symbol: Character, factor: Int128)] = [
    ("n", 1), ("u", 1000), ("m", 1000), ("S", 1000), ("M", 60), ("H", 60),
  ]

  /// `timeout` in the finest unit that needs no more digits, from 1 ns to 99,999,999 hours. Rounded up, so that the
  /// server never times out before the client.
  static func encode(_ timeout: Duration) -> String {
    var value = max(1, self.divide(timeout.attoseconds, by: self.attosecondsPerNanosecond))
    var symbol: Character = "n"
    for unit in self.units {
      value = self.divide(value, by: unit.factor)
      symbol = unit.symbol
      if value <= self.maximumValue { break }
    }
    return "\(min(value, self.maximumValue))\(symbol)"
  }

  /// Rounded up.
  private static func divide(_ dividend: Int128, by divisor: Int128) -> Int128 {
    let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
    return remainder > 0 ? quotient + 1 : quotient
  }
}
