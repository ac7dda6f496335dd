internal import Dispatch
internal import Glibc

/// Writes messages, each preceded by its length, four bytes in network order. Messages of concurrent tasks
/// never mix.
final class DelimitedWriter: Sendable {
  private let descriptor: Int32
  // Writing blocks while nobody reads, so it has a thread that is not one of the tasks'. It also keeps
  // messages apart.
  private let queue = DispatchQueue(label: "connect.conformance.output")

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Returns when the message is written.
  ///
  /// - Throws: ``StreamFailure`` if the output takes no more.
  func write(_ message: [UInt8]) async throws {
    let length = UInt32(truncatingIfNeeded: message.count)
    var bytes = withUnsafeBytes(of: length.bigEndian) { Array($0) }
    bytes += message
    let frame = bytes
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      self.queue.async {
        continuation.resume(with: Result { try self.writeAll(frame) })
      }
    }
  }

  private func writeAll(_ bytes: [UInt8]) throws {
    try bytes.withUnsafeBytes { buffer in
      var written = 0
      while written < buffer.count, let base = buffer.baseAddress {
        let result = Glibc.write(self.descriptor, base + written, buffer.count - written)
        if result >= 0 {
          written += result
        } else if errno != EINTR {
          throw StreamFailure("writing failed", errno: errno)
        }
      }
    }
  }
}
