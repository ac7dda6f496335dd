internal import NIOCore

/// Decodes the response of a call: like ``GRPCResponseDecoder``, with trailers in the body and, in text mode,
/// base64 around it. HTTP trailers mean nothing.
struct GRPCWebResponseDecoder: ResponseDecoder {
  private var decoder: GRPCResponseDecoder
  /// In text mode.
  private var base64: Base64StreamDecoder?

  init(
    isText: Bool,
    contentType: String,
    maximumMessageSize: Int,
    maximumMetadataSize: Int = HeaderListSize.defaultLimit,
    acceptedEncodings: AcceptedEncodings = .none
  ) {
    self.decoder = GRPCResponseDecoder(
      baseContentType: isText ? GRPCWebProtocol.textContentType : GRPCWebProtocol.contentType,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings,
      trailerPlace: .body
    )
    self.base64 = isText ? Base64StreamDecoder() : nil
  }

  var head: HTTPResponseHead? { self.decoder.head }

  var bufferedByteCount: Int { self.decoder.bufferedByteCount }

  mutating func receive(_ head: HTTPResponseHead) {
    // What a proxy says with an error status is no base64 and does not matter.
    if head.status != 200 { self.base64 = nil }
    self.decoder.receive(head)
  }

  mutating func receive(_ bytes: ByteBuffer) {
    if let decoded = self.base64?.decode(bytes) {
      self.receiveDecoded(decoded)
    } else {
      self.decoder.receive(bytes)
    }
  }

  mutating func receiveEnd(trailers: Headers) {
    if let decoded = self.base64?.finish() { self.receiveDecoded(decoded) }
    self.decoder.receiveEnd(trailers: trailers)
  }

  mutating func fail(_ error: ConnectError) {
    self.decoder.fail(error)
  }

  mutating func next() -> StreamResult<ByteBuffer>? {
    self.decoder.next()
  }

  mutating func nextPlainMessage() -> ByteBuffer? {
    self.decoder.nextPlainMessage()
  }

  mutating func settle() { self.decoder.settle() }

  private mutating func receiveDecoded(_ bytes: ByteBuffer) {
    self.decoder.receive(bytes)
    if self.base64?.isValid == false {
      self.decoder.fail(ConnectError(code: .internalError, message: "received body is no valid base64"))
    }
  }
}
