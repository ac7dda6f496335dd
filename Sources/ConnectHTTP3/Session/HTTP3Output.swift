internal import ConnectNIO
internal import NIOCore

/// What a session wants to send: datagrams one behind the other in one buffer, those of the same size in one group. The
/// system can take a group in one write and cut it itself (generic segmentation offload).
struct HTTP3Output {
  struct Group: Equatable {
    /// Where its bytes are in the buffer.
    var start: Int
    var count: Int
    /// The size of its datagrams; the last one may be smaller.
    var datagramSize: Int
    var ecn: UInt32
    /// Whether it is a probe: larger than what is known to pass.
    var isProbe: Bool
    var datagrams = 1
    /// Whether another datagram may follow.
    var isOpen: Bool
  }

  /// What was written of one datagram.
  struct Written {
    var count = 0
    var ecn: UInt32 = 0
    /// Whether it is a probe of the path: larger than what is known to pass (RFC 9000, section 14.4).
    var isProbe = false
  }

  /// Some datagrams that are sent together.
  struct Datagrams {
    var bytes: ByteBuffer
    /// The size of each but the last, which may be smaller. Nil if there is one datagram only.
    var segmentSize: Int?
    var ecn: UInt32
    /// Whether it is one probe of the path.
    var isProbe: Bool
  }

  /// What the system takes at once (UDP_MAX_SEGMENTS, and the largest datagram).
  private static let maximumDatagrams = 64
  private static let maximumBytes = 65_000
  /// What needs more room is gathered in one of the event loop's buffers: most connections are idle most of the time.
  private static let smallLimit = 8 << 10

  private var buffer = ByteBuffer()
  private var groups: [Group] = []

  var byteCount: Int { self.buffer.readableBytes }
  var isEmpty: Bool { self.groups.isEmpty }
  /// How many of the bytes are those of probes.
  var probeBytes: UInt64 { self.groups.reduce(0) { $0 + ($1.isProbe ? UInt64($1.count) : 0) } }

  /// Has `write` write one datagram.
  ///
  /// - Parameter write: Returns what it has written.
  /// - Returns: How many bytes were written.
  mutating func appendDatagram(
    capacity: Int,
    _ write: (UnsafeMutableRawBufferPointer) -> Written
  ) -> Int {
    self.makeRoom(for: capacity)
    let start = self.buffer.writerIndex
    var written = Written()
    let count = self.buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity) { bytes in
      written = write(UnsafeMutableRawBufferPointer(rebasing: bytes[..<capacity]))
      return written.count
    }
    if count > 0 { self.add(written, start: start) }
    return count
  }

  private mutating func makeRoom(for count: Int) {
    let total = self.buffer.readableBytes + count
    guard total > self.buffer.capacity, total > Self.smallLimit, total <= ScratchBuffers.size else { return }
    var larger = ScratchBuffers.current.take()
    larger.writeImmutableBuffer(self.buffer)
    self.buffer = larger
  }

  private mutating func add(_ written: Written, start: Int) {
    let count = written.count
    if let last = self.groups.last, last.isOpen, last.ecn == written.ecn, count <= last.datagramSize,
      last.datagrams < Self.maximumDatagrams, last.count + count <= Self.maximumBytes,
      SegmentationOffload.isUsed
    {
      self.groups[self.groups.count - 1].count += count
      self.groups[self.groups.count - 1].datagrams += 1
      self.groups[self.groups.count - 1].isOpen = count == last.datagramSize
    } else {
      // A probe has its own group. It is larger than the datagrams before it, and the system may refuse it, which must
      // not cost what follows.
      self.groups.append(
        Group(
          start: start,
          count: count,
          datagramSize: count,
          ecn: written.ecn,
          isProbe: written.isProbe,
          isOpen: !written.isProbe
        )
      )
    }
  }

  /// Takes everything.
  ///
  /// - Parameter isLast: Whether little more is to come, so that no storage is kept.
  mutating func takeAll(isLast: Bool = false) -> [Datagrams] {
    let result = self.groups.compactMap { group in
      self.buffer.getSlice(at: group.start, length: group.count).map { bytes in
        Datagrams(
          bytes: bytes,
          segmentSize: group.datagrams > 1 ? group.datagramSize : nil,
          ecn: group.ecn,
          isProbe: group.isProbe
        )
      }
    }
    self.groups.removeAll(keepingCapacity: !isLast)
    if isLast { self.buffer = ByteBuffer() }
    return result
  }

  /// Makes ready for the next round. The buffer's storage is used again if the channel has let go of it.
  mutating func recycle() {
    if self.groups.isEmpty { self.buffer.clear() }
  }

  /// What was taken has been flushed. A large buffer then serves any connection of the event loop.
  mutating func didFlush() {
    guard self.groups.isEmpty, self.buffer.storageCapacity > Self.smallLimit else { return }
    let buffer = self.buffer
    self.buffer = ByteBuffer()
    ScratchBuffers.current.put(consume buffer)
  }
}
