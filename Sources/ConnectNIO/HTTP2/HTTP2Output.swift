internal import NIOCore

/// What a session wants to send: frames in one buffer, which is used again for the next tick if it is small. Large pieces of
/// bodies are separate buffers between the frames.
struct HTTP2Output {
  /// A piece of a body of this size or more, in bytes, is passed on as it is instead of being copied.
  ///
  /// TLS copies everything anyway while it encrypts, and makes records of each buffer. A large piece would leave the
  /// nine bytes of its DATA frame's header in a separate record. So with TLS, everything is copied.
  static let cleartextCopyLimit = 8 << 10
  /// A buffer is not filled beyond this many bytes.
  private static let bufferLimit = ScratchBuffers.size
  private static let initialCapacity = 2 << 10
  /// What needs more room is gathered in one of the event loop's buffers.
  private static let smallLimit = 16 << 10

  /// Full buffers and pieces of bodies, in order, in front of `buffer`.
  private var pieces: [ByteBuffer] = []
  private var buffer: ByteBuffer
  /// All bytes that wait here.
  private(set) var byteCount = 0
  private var limit = 0

  private let copyLimit: Int

  /// - Parameter isEncrypted: Whether the bytes go through TLS.
  init(isEncrypted: Bool = false) {
    self.copyLimit = isEncrypted ? .max : Self.cleartextCopyLimit
    self.buffer = ByteBufferAllocator().buffer(capacity: Self.initialCapacity)
  }

  /// Whether there are as many bytes as the limit of this round. No DATA is added then.
  var isFull: Bool { self.byteCount >= self.limit }

  mutating func append(copying bytes: UnsafeRawBufferPointer) {
    self.makeRoom(for: bytes.count)
    self.buffer.writeBytes(bytes)
    self.byteCount += bytes.count
  }

  mutating func append(_ bytes: ByteBuffer) {
    var bytes = bytes
    self.byteCount += bytes.readableBytes
    if bytes.readableBytes < self.copyLimit {
      self.makeRoom(for: bytes.readableBytes)
      self.buffer.writeBuffer(&bytes)
    } else {
      self.closeBuffer()
      self.pieces.append(bytes)
    }
  }

  /// Takes everything: full buffers and pieces, then the last buffer, which may be empty.
  mutating func takeAll() -> (pieces: [ByteBuffer], last: ByteBuffer) {
    let (pieces, last) = (self.pieces, self.buffer)
    self.pieces = []
    self.buffer = ByteBuffer()
    self.byteCount = 0
    return (pieces, last)
  }

  /// Takes buffers back that were flushed. A small one serves the next round, large ones any connection of the event loop.
  mutating func giveBack(_ pieces: consuming [ByteBuffer], _ last: consuming ByteBuffer) {
    if last.capacity > Self.smallLimit {
      ScratchBuffers.current.put(last)
    } else if self.byteCount == 0 {
      self.buffer = last
    }
    // Without TLS, pieces are those of bodies, which belong to others.
    guard self.copyLimit == .max else { return }
    while let piece = pieces.popLast() { ScratchBuffers.current.put(consume piece) }
  }

  /// Makes ready for the next round if everything was taken. The buffer's storage is used again if the channel
  /// has let go of it.
  ///
  /// - Parameter limit: About how many bytes to gather.
  mutating func recycle(limit: Int) {
    self.limit = limit
    guard self.byteCount == 0 else { return }
    if self.buffer.capacity == 0 {
      self.buffer = ByteBufferAllocator().buffer(capacity: Self.initialCapacity)
    } else {
      self.buffer.clear()
    }
  }

  @inline(__always)
  private mutating func makeRoom(for count: Int) {
    if count > self.buffer.writableBytes { self.enlarge(for: count) }
  }

  private mutating func enlarge(for count: Int) {
    let total = self.buffer.readableBytes + count
    if total <= Self.smallLimit { return }
    if total > Self.bufferLimit { self.closeBuffer() }
    guard self.buffer.capacity < Self.bufferLimit else { return }
    var larger = ScratchBuffers.current.take()
    larger.writeImmutableBuffer(self.buffer)
    self.buffer = larger
  }

  private mutating func closeBuffer() {
    guard self.buffer.readableBytes > 0 else { return }
    self.pieces.append(self.buffer)
    self.buffer = ByteBufferAllocator().buffer(capacity: Self.initialCapacity)
  }
}
