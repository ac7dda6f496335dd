/// The memory of one message with all that it holds: given out piece by piece, given back all at once.
///
/// It counts what it gives out. Past its limit it gives nothing more, which ends a decode.
struct Arena {
  /// What every piece is aligned to; no field of a protoc-c struct needs more.
  static let alignment = 8
  private static let largestChunk = 1024 * 1024

  private var cursor: UnsafeMutableRawPointer
  private var end: UnsafeMutableRawPointer
  /// The chunks after the first, each of which begins with the pointer to the one before it.
  private var lastChunk: UnsafeMutableRawPointer?
  private(set) var chunkCount = 1
  private var nextChunkSize: Int
  /// How many bytes were given out.
  private(set) var used = 0
  /// How many bytes may be given out.
  var limit: Int

  /// An arena in the head of its own first chunk.
  ///
  /// - Parameter capacity: How many bytes the first chunk has room for. 0 makes every piece an allocation of its own,
  ///   so that an address sanitizer sees each.
  static func make(capacity: Int, limit: Int = .max) -> UnsafeMutablePointer<Arena> {
    let head = Self.rounded(MemoryLayout<Arena>.size)
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: head + capacity, alignment: Self.alignment)
    let arena = chunk.bindMemory(to: Arena.self, capacity: 1)
    arena.initialize(
      to: Arena(
        cursor: chunk + head,
        end: chunk + head + capacity,
        nextChunkSize: capacity == 0 ? 0 : max(1024, capacity),
        limit: limit
      )
    )
    return arena
  }

  static func destroy(_ arena: UnsafeMutablePointer<Arena>) {
    var chunk = arena.pointee.lastChunk
    while let current = chunk {
      chunk = current.load(as: UnsafeMutableRawPointer?.self)
      current.deallocate()
    }
    UnsafeMutableRawPointer(arena).deallocate()
  }

  private init(cursor: UnsafeMutableRawPointer, end: UnsafeMutableRawPointer, nextChunkSize: Int, limit: Int)
  {
    self.cursor = cursor
    self.end = end
    self.nextChunkSize = nextChunkSize
    self.limit = limit
  }

  static func rounded(_ size: Int) -> Int {
    (size + Self.alignment - 1) & ~(Self.alignment - 1)
  }

  /// `size` bytes, not set to anything; nil past the limit.
  @inline(__always)
  mutating func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
    guard size >= 0, size <= self.limit - self.used else { return nil }
    return self.take(size)
  }

  /// `size` bytes whatever the limit: for what this process writes, not what a peer sent.
  @inline(__always)
  mutating func take(_ size: Int) -> UnsafeMutableRawPointer {
    let rounded = max(Self.alignment, Self.rounded(size))
    self.used += rounded
    if self.end - self.cursor < rounded { return self.allocateInNewChunk(rounded) }
    defer { self.cursor += rounded }
    return self.cursor
  }

  private mutating func allocateInNewChunk(_ size: Int) -> UnsafeMutableRawPointer {
    let link = Self.rounded(MemoryLayout<UnsafeMutableRawPointer?>.size)
    let room = max(size, self.nextChunkSize)
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: link + room, alignment: Self.alignment)
    chunk.storeBytes(of: self.lastChunk, as: UnsafeMutableRawPointer?.self)
    self.lastChunk = chunk
    self.chunkCount += 1
    // A large piece gets a chunk that it fills; what is left of the current one stays in use.
    if room > size || self.end == self.cursor {
      self.cursor = chunk + link + size
      self.end = chunk + link + room
      if self.nextChunkSize > 0 { self.nextChunkSize = min(2 * self.nextChunkSize, Self.largestChunk) }
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
