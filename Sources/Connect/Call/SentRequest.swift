internal import NIOCore

/// What an attempt has sent in the wire protocol, while it may have to be sent again.
struct SentRequest {
  /// How many bytes are kept, and how many may wait in the transport before messages are held back.
  static let maximumBytes = 64 * 1024

  /// The head, with a body that is known as a whole.
  var head: HTTPStreamRequest
  /// What followed. The first message whatever its size, since most calls have no other.
  private(set) var messages: [ByteBuffer] = []
  private var byteCount = 0
  var isFinished = false

  init(_ head: HTTPStreamRequest) {
    self.head = head
  }

  /// Keeps a message, if not too much was sent.
  ///
  /// - Returns: False if what was sent cannot be kept.
  mutating func append(_ message: ByteBuffer) -> Bool {
    self.byteCount += message.readableBytes
    let hasRoom = self.byteCount <= Self.maximumBytes && self.messages.count < 1024
    guard hasRoom || self.messages.isEmpty else { return false }
    self.messages.append(message)
    return true
  }
}
