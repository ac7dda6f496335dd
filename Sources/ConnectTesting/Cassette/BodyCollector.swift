internal import Connect
internal import NIOCore

/// The bytes of a body as they come, and the envelopes that they complete.
struct BodyCollector: Sendable {
  let framing: BodyFormat.Framing
  private let limit: Int
  private var splitter = EnvelopeSplitter()
  private var base64 = Base64StreamDecoder()
  private var body = ByteBuffer()
  private var size = 0

  /// - Parameter limit: How many bytes the body may have.
  init(_ framing: BodyFormat.Framing, limit: Int) {
    self.framing = framing
    self.limit = limit
  }

  /// - Returns: Whether the body is within its limit.
  mutating func add(_ bytes: ByteBuffer) -> Bool {
    self.size += bytes.readableBytes
    guard self.size <= self.limit else { return false }
    switch self.framing {
    case .whole: self.body.writeImmutableBuffer(bytes)
    case .enveloped: self.splitter.add(bytes)
    case .text: self.splitter.add(self.base64.decode(bytes))
    }
    return true
  }

  /// The body is over: base64 may complete another envelope.
  mutating func finish() {
    if self.framing == .text { self.splitter.add(self.base64.finish()) }
  }

  /// The next complete envelope.
  mutating func nextEnvelope() -> (flags: UInt8, message: ByteBuffer)? { self.splitter.next() }

  /// The received bytes that are in no envelope taken so far. For a body without envelopes, the whole body.
  var rest: ByteBuffer { self.framing == .whole ? self.body : self.splitter.rest }
}
