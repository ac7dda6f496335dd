internal import NIOCore
internal import Synchronization

/// Memory in which large messages are assembled, used again for later messages of the same executor.
///
/// Most allocators return the memory of a large message to the system and take it again for the next message, which costs
/// a page fault for each 4 KiB. The buffers of this pool stay where they are. All calls on one executor share the pool, so
/// what it keeps does not depend on the number of clients, connections or calls. A buffer that was not needed for ``period``
/// is freed.
///
/// `@unchecked Sendable`: used on one executor alone.
final class BodyBuffers: @unchecked Sendable {
  /// Smaller messages are assembled in memory of their own, in bytes.
  static let smallestSize = 8 << 10
  /// The most that waits here, in bytes.
  static let maximumBytes = 4 << 20
  /// How long a buffer waits at least.
  static let period = Duration.seconds(10)

  /// The pools that are in use, by the identities of their executors. A pool retains its executor, so an identity has one
  /// meaning as long as its pool exists.
  private static let pools = Mutex<[ObjectIdentifier: Weak]>([:])

  private struct Weak {
    weak var pool: BodyBuffers?
  }

  private let executor: any CallExecutor

  private var free: [ByteBuffer] = []
  private(set) var freeBytes = 0
  /// The fewest buffers that were free at one time of this period.
  private var unneeded = 0
  /// Buffers that were made or taken and did not come back yet. What did not come from here does not stay here: it would
  /// never be used.
  private var lent = 0
  private var timer: (any CallTimer)?

  init(on executor: any CallExecutor) {
    self.executor = executor
  }

  deinit {
    Self.pools.withLock { pools in
      let id = ObjectIdentifier(self.executor)
      // Not if the executor has another pool by now.
      if pools[id]?.pool == nil { pools[id] = nil }
    }
  }

  /// The pool of an executor.
  static func shared(on executor: any CallExecutor) -> BodyBuffers {
    self.pools.withLock { pools in
      if let pool = pools[ObjectIdentifier(executor)]?.pool { return pool }
      let pool = BodyBuffers(on: executor)
      pools[ObjectIdentifier(executor)] = Weak(pool: pool)
      return pool
    }
  }

  /// An empty buffer with room for `size` bytes.
  func take(size: Int) -> ByteBuffer {
    self.lent += 1
    var buffer = self.free.popLast() ?? ByteBuffer()
    self.freeBytes -= buffer.storageCapacity
    self.unneeded = min(self.unneeded, self.free.count)
    buffer.reserveCapacity(size)
    return buffer
  }

  /// Takes a buffer back, if nobody else holds its memory.
  func put(_ buffer: consuming ByteBuffer) {
    guard self.lent > 0 else { return }
    let isOurs: Void? = buffer.modifyIfUniquelyOwned { $0.clear() }
    guard isOurs != nil else { return }
    self.lent -= 1
    guard self.freeBytes + buffer.storageCapacity <= Self.maximumBytes else { return }
    self.freeBytes += buffer.storageCapacity
    self.free.append(buffer)
    if self.timer == nil { self.startPeriod() }
  }

  private func startPeriod() {
    self.unneeded = self.free.count
    self.timer = self.executor.schedule(after: Self.period) { [weak self] in
      guard let self else { return }
      self.timer = nil
      self.endPeriod()
      if !self.free.isEmpty { self.startPeriod() }
    }
  }

  private func endPeriod() {
    for buffer in self.free.prefix(self.unneeded) { self.freeBytes -= buffer.storageCapacity }
    self.free.removeFirst(self.unneeded)
    // Those whose user has kept them, or whose call has failed.
    self.lent = 0
  }
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
  private var bytes: ByteBuffer?

  @inline(__always)
  mutating func note(_ message: ByteBuffer) {
    if message.readableBytes >= BodyBuffers.smallestSize { self.bytes = message }
  }

  /// To be called once the message was decoded, and to be put back then.
  @inline(__always)
  mutating func take() -> ByteBuffer? { self.bytes.take() }
}
