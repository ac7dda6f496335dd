/// The memory of one message with everything it contains: allocated piece by piece, freed all at once.
///
/// An arena counts allocated bytes. Past its limit, ``allocate(_:)`` fails, which ends a decode.
///
/// Invariant: `head` points to the start of the arena's first chunk. `head` and every piece are valid until
/// ``destroy()``, which only the owner of the arena calls, in its `deinit`. Users of a piece keep the owner alive. Only
/// one thread at a time allocates.
struct Arena {
  private struct Head {
    var cursor: UnsafeMutableRawPointer
    var end: UnsafeMutableRawPointer
    /// The last chunk after the first one. Each of these chunks begins with a pointer to the previous chunk.
    var lastChunk: UnsafeMutableRawPointer?
    var chunkCount = 1
    var nextChunkSize: Int
    var used = 0
    var limit: Int
  }

  /// The alignment of every piece; no field of a protoc-c struct needs more.
  static let alignment = 8
  private static let largestChunk = 1024 * 1024

  private let head: UnsafeMutablePointer<Head>

  /// - Parameter capacity: The number of bytes in the first chunk. With 0, every piece is a separate allocation, so
  ///   that an address sanitizer sees each piece.
  init(capacity: Int, limit: Int = .max) {
    let headSize = Self.rounded(MemoryLayout<Head>.size)
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: headSize + capacity, alignment: Self.alignment)
    self.head = chunk.bindMemory(to: Head.self, capacity: 1)
    self.head.initialize(
      to: Head(
        cursor: chunk + headSize,
        end: chunk + headSize + capacity,
        nextChunkSize: capacity == 0 ? 0 : max(1024, capacity),
        limit: limit
      )
    )
  }

  /// Frees all memory.
  func destroy() {
    var chunk = self.head.pointee.lastChunk
    while let current = chunk {
      chunk = current.load(as: UnsafeMutableRawPointer?.self)
      current.deallocate()
    }
    UnsafeMutableRawPointer(self.head).deallocate()
  }

  var chunkCount: Int { self.head.pointee.chunkCount }

  /// The number of allocated bytes.
  var used: Int { self.head.pointee.used }

  /// The number of bytes that may be allocated.
  var limit: Int {
    get { self.head.pointee.limit }
    nonmutating set { self.head.pointee.limit = newValue }
  }

  static func rounded(_ size: Int) -> Int {
    (size + Self.alignment - 1) & ~(Self.alignment - 1)
  }

  /// `size` uninitialised bytes; nil past the limit.
  @inline(__always)
  func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
    guard size >= 0, size <= self.head.pointee.limit - self.head.pointee.used else { return nil }
    return self.take(size)
  }

  /// `size` bytes whatever the limit: for data that this process writes, not for data from a peer.
  @inline(__always)
  func take(_ size: Int) -> UnsafeMutableRawPointer {
    let rounded = max(Self.alignment, Self.rounded(size))
    self.head.pointee.used += rounded
    let cursor = self.head.pointee.cursor
    if self.head.pointee.end - cursor < rounded { return self.allocateInNewChunk(rounded) }
    self.head.pointee.cursor = cursor + rounded
    return cursor
  }

  private func allocateInNewChunk(_ size: Int) -> UnsafeMutableRawPointer {
    let head = self.head
    let link = Self.rounded(MemoryLayout<UnsafeMutableRawPointer?>.size)
    let room = max(size, head.pointee.nextChunkSize)
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: link + room, alignment: Self.alignment)
    chunk.storeBytes(of: head.pointee.lastChunk, as: UnsafeMutableRawPointer?.self)
    head.pointee.lastChunk = chunk
    head.pointee.chunkCount += 1
    // A large piece gets a separate chunk of its exact size; the current chunk stays in use.
    if room > size || head.pointee.end == head.pointee.cursor {
      head.pointee.cursor = chunk + link + size
      head.pointee.end = chunk + link + room
      if head.pointee.nextChunkSize > 0 {
        head.pointee.nextChunkSize = min(2 * head.pointee.nextChunkSize, Self.largestChunk)
      }
    }
    return chunk + link
  }
}

extension UnsafeMutableRawPointer {
  /// Copies all of `bytes` to this place.
  @inline(__always)
  func store(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    self.copyMemory(from: start, byteCount: bytes.count)
  }
}
