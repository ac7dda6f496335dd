internal import NIOCore

/// What an attempt has sent in the wire protocol, while it may have to be sent again.
struct SentRequest {
  /// How many bytes are kept, and how many may wait in the transport before messages are held back.
  static let maximumBytes = 64 * 1024

  /// The head, with a body that is known as a whole.
  var head: HTTPStreamRequest
  /// The messages after the head. The first one is kept whatever its size, since most calls have only one.
  private(set) var messages: [ByteBuffer] = []
  /// All messages before framing, to write them in another protocol; nil if the client speaks one.
  private(set) var given: [ByteBuffer]?
  private var byteCount = 0
  var isFinished = false

  init(_ head: consuming HTTPStreamRequest, given: [ByteBuffer]? = nil) {
    self.head = head
    self.given = given
  }

  /// Keeps a message, if not too much was sent.
  ///
  /// - Parameter given: The message before framing, if the client may choose its protocol.
  /// - Returns: False if what was sent cannot be kept.
  mutating func append(_ message: ByteBuffer, given: ByteBuffer? = nil) -> Bool {
    self.byteCount += max(message.readableBytes, given?.readableBytes ?? 0)
    let hasRoom = self.byteCount <= Self.maximumBytes && self.messages.count < 1024
    guard hasRoom || self.messages.isEmpty else { return false }
    self.messages.append(message)
    if let given { self.given?.append(given) }
    return true
  }
}

extension RequestHead {
  /// Whether the server may process the request twice. An interceptor may have made it a request to another method than
  /// the one that was called.
  func hasNoSideEffects(calling called: MethodInfo) -> Bool {
    guard called.idempotencyLevel == .noSideEffects else { return false }
    let method = self.method ?? called
    return method.idempotencyLevel == .noSideEffects && self.url.path.hasSuffix(method.path)
  }
}
