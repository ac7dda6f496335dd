package import NIOCore

/// Decodes the response of a call: like ``GRPCResponseDecoder``, with trailers in the body. In text mode the body is base64.
/// HTTP trailers are ignored.
struct GRPCWebResponseDecoder: ResponseDecoder {
  private var decoder: GRPCResponseDecoder
  /// Nil if the body is not base64.
  private var base64: Base64StreamDecoder?

  init(
    isText: Bool,
    contentType: String,
    maximumMessageSize: Int,
    maximumMetadataSize: Int = HeaderListSize.defaultLimit,
    acceptedEncodings: AcceptedEncodings = .none,
    buffers: BodyBuffers? = nil
  ) {
    self.decoder = GRPCResponseDecoder(
      baseContentType: isText ? GRPCWebProtocol.textContentType : GRPCWebProtocol.contentType,
      contentType: contentType,
      maximumMessageSize: maximumMessageSize,
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings,
      buffers: buffers,
      trailerPlace: .body
    )
    self.base64 = isText ? Base64StreamDecoder() : nil
  }

  var bufferedByteCount: Int { self.decoder.bufferedByteCount }

  mutating func receive(_ head: HTTPResponseHead) {
    // The body of an error status comes from a proxy and is not base64.
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

  mutating func receivedText() -> ReceivedText { self.decoder.receivedText() }

  private mutating func receiveDecoded(_ bytes: ByteBuffer) {
    self.decoder.receive(bytes)
    if self.base64?.isValid == false {
      self.decoder.fail(ConnectError(code: .internalError, message: "received body is no valid base64"))
    }
  }
}

/// Decodes base64 that arrives in pieces. Padding may occur in mid-stream, if a server encodes parts of the body
/// separately. It may be missing at the end.
package struct Base64StreamDecoder: Sendable {
  /// The digits of the group of four that is not yet complete.
  private var bits: UInt32 = 0
  private var digitCount = 0
  private var paddingCount = 0
  /// Whether all characters so far were base64. Decoding stops at the first other character.
  package private(set) var isValid = true

  package init() {}

  /// The bytes that `text` completes, as far as it is base64.
  package mutating func decode(_ text: ByteBuffer) -> ByteBuffer {
    guard self.isValid else { return ByteBuffer() }
    var bytes = ByteBuffer()
    bytes.reserveCapacity((text.readableBytes + 3) / 4 * 3)
    var isValid = self.isValid
    var bits = self.bits
    var digitCount = self.digitCount
    var paddingCount = self.paddingCount
    text.withUnsafeReadableBytes { source in
      _ = bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: (source.count + 3) / 4 * 3) { target in
        var written = 0
        for character in source {
          if paddingCount == 0, let digit = Base64.digit(character) {
            bits = bits << 6 | digit
            digitCount += 1
            guard digitCount == 4 else { continue }
          } else if character == UInt8(ascii: "="), digitCount >= 2 {
            paddingCount += 1
            guard digitCount + paddingCount == 4 else { continue }
            bits <<= 6 * UInt32(paddingCount)
          } else {
            isValid = false
            return written
          }
          for index in 0..<(3 - paddingCount) {
            target[written] = UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(index)))
            written += 1
          }
          bits = 0
          digitCount = 0
          paddingCount = 0
        }
        return written
      }
    }
    self.bits = bits
    self.digitCount = digitCount
    self.paddingCount = paddingCount
    self.isValid = isValid
    return bytes
  }

  /// The bytes of a last group without padding. To be called at the end of the text. A text that breaks off within a byte
  /// is not valid.
  package mutating func finish() -> ByteBuffer {
    guard self.isValid, self.digitCount > 0 else { return ByteBuffer() }
    guard self.paddingCount == 0, self.digitCount >= 2 else {
      self.isValid = false
      return ByteBuffer()
    }
    return self.decode(ByteBuffer(repeating: UInt8(ascii: "="), count: 4 - self.digitCount))
  }
}
