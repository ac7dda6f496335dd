internal import NIOCore

extension ConnectProtocol {
  /// The most milliseconds that fit in the ten digits of `connect-timeout-ms`; almost 116 days.
  private static let maximumTimeout: Int64 = 9_999_999_999

  func envelopesMessages(of streamType: StreamType) -> Bool {
    streamType != .unary
  }

  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer {
    guard streamType != .unary else { return message }
    return Envelope.encode(message, flags: isCompressed ? Envelope.compressedFlag : 0)
  }

  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers {
    var result = Headers()
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
    UserAgent.add(to: &result, unlessIn: headers)
    result.append(contentsOf: headers)
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

  /// `timeout` in milliseconds, from 1 to the largest number of ten digits. Rounded up, so that the server never times
  /// out before the client.
  private static func milliseconds(_ timeout: Duration) -> Int64 {
    let (seconds, attoseconds) = timeout.components
    guard seconds >= 0, attoseconds >= 0 else { return 1 }
    guard seconds <= self.maximumTimeout / 1000 else { return self.maximumTimeout }
    let fraction = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    return min(max(1, seconds * 1000 + fraction), self.maximumTimeout)
  }
}

/// The query that carries a side-effect-free unary request, <https://connectrpc.com/docs/protocol#unary-get-request>.
///
/// Equal messages give equal queries, so that caches can do their work: the parameters' order is fixed.
enum ConnectGETQuery {
  /// - Parameters:
  ///   - codecName: The content-type's subtype. JSON that is not compressed goes as text, percent-encoded;
  ///     everything else as base64 for URLs, without padding.
  ///   - encoding: Nil if the message is not compressed.
  static func make(message: ByteBuffer, codecName: String, encoding: String?) -> String {
    let isText = codecName == "json" && encoding == nil
    var query = "connect=v1"
    if !isText { query += "&base64=1" }
    if let encoding { query += "&compression=\(PercentEncoding.encode(encoding.utf8))" }
    query += "&encoding=\(PercentEncoding.encode(codecName.utf8))&message="
    query +=
      isText
      ? PercentEncoding.encode(message.readableBytesView)
      : String(buffer: Base64.encode(message, alphabet: .urlSafe, isPadded: false))
    return query
  }
}
