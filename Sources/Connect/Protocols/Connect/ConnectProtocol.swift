internal import NIOCore

/// The Connect protocol, <https://connectrpc.com/docs/protocol>.
///
/// Unary calls are plain HTTP: the message is the body, errors are JSON with an HTTP status. Streams are
/// enveloped messages with status 200 and end with a JSON message. HTTP trailers mean nothing.
struct ConnectProtocol: WireProtocol {
  static let unaryContentTypePrefix = "application/"
  static let streamContentTypePrefix = "application/connect+"

  /// The most milliseconds that fit in the ten digits of `connect-timeout-ms`; almost 116 days.
  private static let maximumTimeout: Int64 = 9_999_999_999

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

  func envelopesMessages(of streamType: StreamType) -> Bool {
    streamType != .unary
  }

  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer {
    guard streamType != .unary else { return message }
    return Envelope.encode(message, flags: isCompressed ? Envelope.compressedFlag : 0)
  }

  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers {
    var result = headers
    result.reserveCapacity(headers.count + 6)
    let isUnary = request.streamType == .unary
    if !request.isGET {
      result.add(name: "content-type", value: request.contentType)
      result.add(name: "connect-protocol-version", value: "1")
      if let encoding = request.encoding {
        result.add(name: isUnary ? "content-encoding" : "connect-content-encoding", value: encoding)
      }
    }
    if let accepted = request.acceptedEncodings.headerValue {
      result.add(name: isUnary ? "accept-encoding" : "connect-accept-encoding", value: accepted)
    }
    if let timeout = request.timeout { result.append(self.timeoutField(timeout)) }
    UserAgent.addIfMissing(to: &result)
    return result
  }

  func timeoutField(_ timeout: Duration) -> Headers.Field {
    Headers.Field(lowercasedName: "connect-timeout-ms", value: String(Self.milliseconds(timeout)))
  }

  func getQuery(message: ByteBuffer, for request: WireRequest) -> String? {
    guard request.streamType == .unary else { return nil }
    return ConnectGETQuery.make(
      message: message,
      codecName: String(MediaType.essence(request.contentType).dropFirst(Self.unaryContentTypePrefix.count)),
      encoding: request.encoding
    )
  }

  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int,
    acceptedEncodings: AcceptedEncodings
  ) -> any ResponseDecoder & AnyObject {
    if streamType == .unary {
      ConnectUnaryDecoder(
        contentType: contentType,
        maximumMessageSize: maximumMessageSize,
        acceptedEncodings: acceptedEncodings
      ).boxed
    } else {
      ConnectStreamDecoder(
        contentType: contentType,
        maximumMessageSize: maximumMessageSize,
        maximumMetadataSize: maximumMetadataSize,
        acceptedEncodings: acceptedEncodings
      ).boxed
    }
  }

  /// `timeout` in milliseconds, rounded up so that the server never gives up before the client, at least 1 and
  /// at most what ten digits can say.
  private static func milliseconds(_ timeout: Duration) -> Int64 {
    let (seconds, attoseconds) = timeout.components
    guard seconds >= 0, attoseconds >= 0 else { return 1 }
    guard seconds <= self.maximumTimeout / 1000 else { return self.maximumTimeout }
    let fraction = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    return min(max(1, seconds * 1000 + fraction), self.maximumTimeout)
  }
}
