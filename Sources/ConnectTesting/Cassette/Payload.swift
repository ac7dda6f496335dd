internal import Connect
internal import NIOCore

/// A message of a body, or another part of a body, as a cassette has it.
struct Payload: Sendable, Hashable {
  enum Content: Sendable, Hashable {
    case json(JSONValue)
    case text(String)
    case bytes(ByteBuffer)
    /// The trailers in a body of gRPC-Web.
    case fields(Headers)
    /// The beginning of a message whose rest did not come.
    case cut(Cut)
  }

  /// What a client can know of a message that breaks off. Its bytes are not kept, since nobody decodes them.
  struct Cut: Sendable, Hashable {
    /// The envelope's flags, if its prefix has arrived.
    var flags: UInt8 = 0
    /// The length that the envelope's prefix says.
    var length = 0
    /// How many bytes have come, with the prefix.
    var received: Int
  }

  var content: Content
  /// The envelope's flags, without the flag of compression if ``isCompressed`` is true.
  var flags: UInt8 = 0
  /// Whether the content was compressed in the body.
  var isCompressed = false

  /// For messages of ``Cassette/Request``.
  var line: String {
    switch self.content {
    case .json(let value): value.description
    case .text(let text): text
    case .bytes(let bytes): String(buffer: Base64.encode(bytes, alphabet: .standard, isPadded: true))
    case .fields(let fields): fields.description
    case .cut(let cut): "the first \(cut.received) bytes of a message"
    }
  }

  /// For people.
  var description: String {
    if case .json(let value) = self.content { value.text() } else { "base64: \(self.line)" }
  }
}

/// Cuts a body into envelopes, and keeps what is left.
struct EnvelopeSplitter: Sendable {
  static let prefixLength = 5

  private var bytes = ByteBuffer()

  /// The bytes of an envelope that is not complete.
  var rest: ByteBuffer { self.bytes }

  mutating func add(_ chunk: ByteBuffer) {
    self.bytes.writeImmutableBuffer(chunk)
  }

  mutating func next() -> (flags: UInt8, message: ByteBuffer)? {
    let start = self.bytes.readerIndex
    guard let flags = self.bytes.getInteger(at: start, as: UInt8.self),
      let length = self.bytes.getInteger(at: start + 1, as: UInt32.self),
      let message = self.bytes.getSlice(at: start + Self.prefixLength, length: Int(length))
    else { return nil }
    self.bytes.moveReaderIndex(forwardBy: Self.prefixLength + Int(length))
    if self.bytes.readableBytes == 0 { self.bytes = ByteBuffer() }
    return (flags, message)
  }
}
