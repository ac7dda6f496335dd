internal import NIOCore

/// Memory in which large messages are assembled, used again for later messages of the same executor.
///
/// Most allocators return the memory of a large message to the system and take it again for the next message, which costs
/// a page fault for each 4 KiB. The buffers of this pool stay where they are. All calls on one executor share the pool, so
/// what it keeps does not depend on the number of clients, connections or calls. A buffer that was not needed for ``period``
/// is freed.
///
/// `@unchecked Sendable`: used on one executor alone.
package final class BodyBuffers: @unchecked Sendable {
  /// Smaller messages are assembled in memory of their own, in bytes.
  static let smallestSize = 8 << 10
  /// The most that waits here, in bytes.
  static let maximumBytes = 4 << 20
  /// How long a buffer waits at least.
  static let period = Duration.seconds(10)

  private var free: [ByteBuffer] = []
  private(set) var freeBytes = 0
  /// The fewest buffers that were free at one time of this period.
  private var unneeded = 0
  /// Buffers that were made or taken and did not come back yet. What did not come from here does not stay here: it would
  /// never be used.
  private var lent = 0
  private var timer: (any CallTimer)?

  package init() {}

  /// An empty buffer with room for `size` bytes, and not for many times as much: messages that wait would hold it all.
  func take(size: Int) -> ByteBuffer {
    self.lent += 1
    let fits = (self.free.last?.storageCapacity ?? .max) <= 4 * size
    var buffer = (fits ? self.free.popLast() : nil) ?? ByteBuffer()
    self.freeBytes -= buffer.storageCapacity
    self.unneeded = min(self.unneeded, self.free.count)
    buffer.reserveCapacity(size)
    return buffer
  }

  /// Takes a buffer back, if nobody else holds its memory.
  func put(_ buffer: consuming ByteBuffer, on executor: any CallExecutor) {
    guard self.lent > 0 else { return }
    let isOurs: Void? = buffer.modifyIfUniquelyOwned { $0.clear() }
    guard isOurs != nil else { return }
    self.lent -= 1
    guard self.freeBytes + buffer.storageCapacity <= Self.maximumBytes else { return }
    self.freeBytes += buffer.storageCapacity
    self.free.append(buffer)
    if self.timer == nil { self.startPeriod(on: executor) }
  }

  private func startPeriod(on executor: any CallExecutor) {
    self.unneeded = self.free.count
    self.timer = executor.schedule(after: Self.period) {
      self.timer = nil
      self.endPeriod()
      if !self.free.isEmpty { self.startPeriod(on: executor) }
    }
  }

  private func endPeriod() {
    for buffer in self.free.prefix(self.unneeded) { self.freeBytes -= buffer.storageCapacity }
    self.free.removeFirst(self.unneeded)
    // Those whose user has kept them, or whose call has failed.
    self.lent = 0
  }
}

/// An executor whose calls share memory for large messages.
package protocol BufferingExecutor: CallExecutor {
  var bodyBuffers: BodyBuffers { get }
}

extension BodyBuffers? {
  /// An empty buffer with room for `size` bytes, from the pool if it is large.
  func buffer(size: Int) -> ByteBuffer {
    if let self, size >= BodyBuffers.smallestSize { return self.take(size: size) }
    var buffer = ByteBuffer()
    buffer.reserveCapacity(size)
    return buffer
  }
}

/// The last large message that a response has handed out. Its memory is used again once the message was decoded.
struct LentMessage {
  private var bytes = ByteBuffer()

  @inline(never)
  mutating func keep(_ message: ByteBuffer) {
    self.bytes = message
  }

  /// To be called once the message was decoded.
  @inline(never)
  mutating func giveBack(to buffers: BodyBuffers?, on executor: any CallExecutor) {
    let bytes = self.bytes
    self.bytes = ByteBuffer()
    buffers?.put(consume bytes, on: executor)
  }
}
