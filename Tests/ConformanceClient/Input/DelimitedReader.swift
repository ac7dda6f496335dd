internal import Dispatch
internal import Glibc

/// Reads messages that are each preceded by their length, four bytes in network order.
final class DelimitedReader: Sendable {
  /// Beyond this, it is no message of a conformance runner.
  private static let maximumLength = 64 << 20

  private let descriptor: Int32
  // Reading blocks, so it has a thread that is not one of the tasks'.
  private let queue = DispatchQueue(label: "connect.conformance.input")

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// The next message; nil at the end of the input.
  ///
  /// - Throws: ``StreamFailure`` if the input ends within a message, cannot be read, or announces a message
  ///   that is too long.
  func next() async throws -> [UInt8]? {
    try await withCheckedThrowingContinuation { continuation in
      self.queue.async {
        continuation.resume(with: Result { try self.read() })
      }
    }
  }

  private func read() throws -> [UInt8]? {
    guard let prefix = try self.read(4, isStart: true) else { return nil }
    let length = prefix.reduce(0) { $0 << 8 | Int($1) }
    guard length <= Self.maximumLength else {
      throw StreamFailure("a message of \(length) bytes is too long")
    }
    return try self.read(length, isStart: false)
  }

  private func read(_ count: Int, isStart: Bool) throws -> [UInt8]? {
    var filled = 0
    var end = false
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      while filled < count, !end, failure == 0, let base = buffer.baseAddress {
        let result = Glibc.read(self.descriptor, base + filled, count - filled)
        if result > 0 {
          filled += result
        } else if result == 0 {
          end = true
        } else if errno != EINTR {
          failure = errno
        }
      }
      initializedCount = filled
    }
    if failure != 0 { throw StreamFailure("reading failed", errno: failure) }
    if filled == count { return bytes }
    if isStart, filled == 0 { return nil }
    throw StreamFailure("it ended after \(filled) of \(count) bytes")
  }
}
