package import NIOCore
internal import NIOPosix

/// Large buffers for what connections write, shared by all connections of an event loop: a connection has one only while it
/// writes.
///
/// So a connection that once wrote much keeps nothing of it, and a large write does not take memory from the system each
/// time.
///
/// `@unchecked Sendable`: each thread has its own, and no other thread gets it.
package final class ScratchBuffers: @unchecked Sendable {
  /// The size of a buffer, in bytes.
  package static let size = 64 << 10
  private static let maximumCount = 4
  private static let ofThread = ThreadSpecificVariable<ScratchBuffers>()

  private var free: [ByteBuffer] = []

  package init() {}

  /// The buffers of the event loop that runs now.
  package static var current: ScratchBuffers {
    if let buffers = self.ofThread.currentValue { return buffers }
    let buffers = ScratchBuffers()
    self.ofThread.currentValue = buffers
    return buffers
  }

  /// An empty buffer with room for ``size`` bytes.
  package func take() -> ByteBuffer {
    self.free.popLast() ?? ByteBufferAllocator().buffer(capacity: Self.size)
  }

  /// Takes a buffer back, unless somebody holds its memory, as a channel does that could not write all of it.
  package func put(_ buffer: consuming ByteBuffer) {
    guard self.free.count < Self.maximumCount, buffer.storageCapacity >= Self.size,
      buffer.storageCapacity <= 2 * Self.size,
      buffer.modifyIfUniquelyOwned({ $0.clear() }) != nil
    else { return }
    self.free.append(buffer)
  }
}
