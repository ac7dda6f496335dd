internal import CNghttp3
internal import DequeModule
internal import NIOCore

/// The bytes of a request's body, in order. The first ones were given to libnghttp3: they must stay where they are in
/// memory until the peer has acknowledged them. The other ones wait.
struct HTTP3OutboundBody {
  private var buffers: Deque<ByteBuffer> = []
  /// How many of the buffers were given to libnghttp3.
  private var givenBuffers = 0
  /// How many bytes of the first buffer were acknowledged.
  private var acknowledged = 0
  /// The bytes that wait.
  private(set) var waitingBytes = 0

  var isWaiting: Bool { self.waitingBytes > 0 }

  /// All bytes that are held.
  var heldBytes: Int { self.buffers.reduce(-self.acknowledged) { $0 + $1.readableBytes } }

  mutating func append(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0 else { return }
    self.buffers.append(bytes)
    self.waitingBytes += bytes.readableBytes
  }

  /// Gives buffers that wait to libnghttp3, as many as `pieces` has room for, and returns how many.
  mutating func give(to pieces: UnsafeMutableBufferPointer<nghttp3_vec>) -> Int {
    let count = min(pieces.count, self.buffers.count - self.givenBuffers)
    for index in 0..<count {
      // A buffer's memory is on the heap and belongs to all its copies. It stays as it is while a copy is here and
      // nobody writes to it; nobody does.
      pieces[index] = self.buffers[self.givenBuffers + index].withUnsafeReadableBytes { bytes in
        nghttp3_vec(
          base: UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)),
          len: bytes.count
        )
      }
      self.waitingBytes -= pieces[index].len
    }
    self.givenBuffers += count
    return count
  }

  /// Lets go of the next `count` bytes that were given.
  mutating func acknowledge(_ count: Int) {
    var count = count
    while count > 0, self.givenBuffers > 0, let first = self.buffers.first {
      let left = first.readableBytes - self.acknowledged
      guard count >= left else {
        self.acknowledged += count
        return
      }
      count -= left
      self.acknowledged = 0
      self.givenBuffers -= 1
      self.buffers.removeFirst()
    }
  }

  /// Drops the bytes that wait. Those that were given stay.
  mutating func removeWaiting() {
    self.buffers.removeLast(self.buffers.count - self.givenBuffers)
    self.waitingBytes = 0
  }

  /// Drops everything: libnghttp3 and libngtcp2 have forgotten the stream.
  mutating func removeAll() { self = Self() }
}
