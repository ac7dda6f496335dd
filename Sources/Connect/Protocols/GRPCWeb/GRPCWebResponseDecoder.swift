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
    acceptedEncodings: AcceptedEncodings = .none
  ) {
    self.decoder = GRPCResponseDecoder(
      baseContentType: isText ? GRPCWebProtocol.textContentType : GRPCWebProtocol.contentType,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
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
    guard self.base64 != nil else {
      self.decoder.receive(bytes)
      return
    }
    self.receiveText { base64 throws(ConnectError) in try base64?.decode(bytes) }
  }

  mutating func receiveEnd(trailers: Headers) {
    if self.base64 != nil { self.receiveText { base64 throws(ConnectError) in try base64?.finish() } }
    self.decoder.receiveEnd(trailers: trailers)
  }

  mutating func fail(_ error: ConnectError) {
    self.decoder.fail(error)
  }

  mutating func next() -> StreamResult<ByteBuffer>? {
    self.decoder.next()
  }

  private mutating func receiveText(
    _ decode: (inout Base64StreamDecoder?) throws(ConnectError) -> ByteBuffer?
  ) {
    do throws(ConnectError) {
      if let bytes = try decode(&self.base64) { self.decoder.receive(bytes) }
    } catch {
      self.decoder.fail(error)
    }
  }
}
