/// Messages on a TCP connection: each comes with its length in two bytes before it (RFC 1035, section 4.2.2).
package struct DNSStream: Sendable {
  private var buffer: [UInt8] = []

  package init() {}

  /// The message as it goes over TCP.
  ///
  /// - Parameter message: At most 65,535 bytes.
  package static func framed(_ message: [UInt8]) -> [UInt8] {
    let count = UInt16(clamping: message.count)
    return [UInt8(count >> 8), UInt8(truncatingIfNeeded: count)] + message.prefix(Int(count))
  }

  /// Takes bytes from the connection, and returns the messages that they complete.
  ///
  /// No more than one incomplete message is kept: at most 64 KiB.
  package mutating func receive(_ bytes: some Sequence<UInt8>) -> [[UInt8]] {
    self.buffer += bytes
    var messages: [[UInt8]] = []
    var start = 0
    while self.buffer.count - start >= 2 {
      let end = start + 2 + Int(self.buffer[start]) << 8 + Int(self.buffer[start + 1])
      guard self.buffer.count >= end else { break }
      messages.append(Array(self.buffer[start + 2..<end]))
      start = end
    }
    self.buffer.removeFirst(start)
    return messages
  }
}
