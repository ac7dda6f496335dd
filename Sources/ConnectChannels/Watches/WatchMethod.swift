internal import NIOCore

/// A streaming method that a channel itself calls on its servers.
struct WatchMethod<Answer: Sendable> {
  let path: String
  /// The request message.
  let request: ByteBuffer
  /// The largest message that a server may send, in bytes.
  let largestAnswer: Int
  /// Whether a watch that has brought an answer restarts at once when it ends. Otherwise it waits for the backoff.
  let restartsAtOnce: Bool
  /// What the log says of a server without the method.
  let warning: String
  /// Decodes an answer; nil if it is something else.
  let decode: ([UInt8]) -> Answer?
}
