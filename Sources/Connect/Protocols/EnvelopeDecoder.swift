internal import DequeModule
package import NIOCore

/// Cuts a body into ``Envelope``s, wherever its chunks begin and end.
///
/// A message that lies within one chunk is a slice of it; one that spans chunks is copied once. Limits are
/// checked on the prefix, before anything is buffered for the message. What flags mean is the protocol's
/// business, but for one: the flag that marks the last envelope (end-of-stream, trailers), which has a limit of
/// its own.
package struct EnvelopeDecoder: Sendable {
  /// What is reserved for a message on the word of its prefix alone, in bytes; more is reserved as more
  /// arrives.
  static let maximumReservation = 4 << 20
  /// Chunks below this size that wait in a row are copied together, so that a peer which sends byte by byte
  /// cannot make each of them hold a read buffer.
  private static let smallChunkSize = 1024

  private let maximumMessageSize: Int
  private let endFlag: UInt8
  private let maximumEndSize: Int

  /// The chunk that is being read, and those behind it.
  private var current = ByteBuffer()
  private var rest = Deque<ByteBuffer>()
  /// The bytes of a prefix that is not yet complete, the last one lowest.
  private var prefix: UInt64 = 0
  private var prefixCount = 0
  /// The envelope whose prefix was read and whose message has yet to come.
  private var pending: Pending?

  /// The bytes received and not yet handed out, prefixes included.
  package private(set) var bufferedByteCount = 0

  private struct Pending {
    var flags: UInt8
    var length: Int
    /// What arrived of a message that spans chunks.
    var partial: ByteBuffer?
  }

  /// - Parameters:
  ///   - maximumMessageSize: The limit for a message, in bytes.
  ///   - endFlag: The flag of the envelope that ends the body; 0 if there is no such.
  ///   - maximumEndSize: The limit for that envelope's message, in bytes.
  package init(maximumMessageSize: Int, endFlag: UInt8 = 0, maximumEndSize: Int = 0) {
    self.maximumMessageSize = maximumMessageSize
    self.endFlag = endFlag
    self.maximumEndSize = maximumEndSize
  }

  package mutating func receive(_ bytes: ByteBuffer) {
    let count = bytes.readableBytes
    guard count > 0 else { return }
    self.bufferedByteCount += count
    if self.current.readableBytes == 0 && self.rest.isEmpty {
      self.current = bytes
    } else if count < Self.smallChunkSize, let last = self.rest.indices.last,
      self.rest[last].readableBytes < Self.smallChunkSize
    {
      self.rest[last].writeImmutableBuffer(bytes)
    } else {
      self.rest.append(bytes)
    }
  }

  /// The next envelope; nil if more has to arrive for that.
  ///
  /// - Throws: ``ConnectError`` with `resource_exhausted` if the message is larger than the limit. The decoder
  ///   is of no use after that.
  package mutating func next() throws(ConnectError) -> Envelope? {
    if self.pending == nil {
      guard let (flags, length) = self.readPrefix() else { return nil }
      try self.check(length: length, flags: flags)
      self.pending = Pending(flags: flags, length: length)
    }
    guard var pending = self.pending.take() else { return nil }
    guard let message = self.readMessage(&pending) else {
      self.pending = pending
      return nil
    }
    self.bufferedByteCount -= Envelope.prefixLength + pending.length
    return Envelope(flags: pending.flags, message: message)
  }

  /// Drops what is buffered.
  mutating func discard() {
    self.current = ByteBuffer()
    self.rest.removeAll()
    self.pending = nil
    self.prefixCount = 0
    self.bufferedByteCount = 0
  }

  private func check(length: Int, flags: UInt8) throws(ConnectError) {
    let isEnd = self.endFlag != 0 && flags & self.endFlag != 0
    let limit = isEnd ? self.maximumEndSize : self.maximumMessageSize
    // The limit is that of the message itself, which is checked when it is decompressed.
    let isCompressed = flags & Envelope.compressedFlag != 0
    guard length > (isCompressed ? ResponseEncoding.maximumCompressedSize(of: limit) : limit) else { return }
    let what = isEnd ? "end of the response" : "message"
    throw ConnectError(
      code: .resourceExhausted,
      message: "received \(what) of \(length) bytes, which is over the limit of \(limit) bytes"
    )
  }

  private mutating func readPrefix() -> (flags: UInt8, length: Int)? {
    if self.prefixCount == 0, self.current.readableBytes >= Envelope.prefixLength,
      let (flags, length) = self.current.readMultipleIntegers(as: (UInt8, UInt32).self)
    {
      return (flags, Int(length))
    }
    while self.prefixCount < Envelope.prefixLength {
      guard self.advance(), let byte = self.current.readInteger(as: UInt8.self) else { return nil }
      self.prefix = self.prefix << 8 | UInt64(byte)
      self.prefixCount += 1
    }
    let flags = UInt8(truncatingIfNeeded: self.prefix >> 32)
    let length = UInt32(truncatingIfNeeded: self.prefix)
    self.prefixCount = 0
    self.prefix = 0
    return (flags, Int(length))
  }

  /// The message if it is complete; what there is of it is moved to `pending` if not.
  private mutating func readMessage(_ pending: inout Pending) -> ByteBuffer? {
    if pending.length == 0 { return ByteBuffer() }
    guard self.advance() else { return nil }
    if pending.partial == nil, let message = self.current.readSlice(length: pending.length) {
      self.releaseIfDrained()
      return message
    }
    var partial = pending.partial.take() ?? ByteBuffer()
    partial.reserveCapacity(min(pending.length, Self.maximumReservation))
    while partial.readableBytes < pending.length && self.advance() {
      let count = min(pending.length - partial.readableBytes, self.current.readableBytes)
      if var piece = self.current.readSlice(length: count) { partial.writeBuffer(&piece) }
    }
    self.releaseIfDrained()
    if partial.readableBytes == pending.length { return partial }
    pending.partial = partial
    return nil
  }

  /// Ensures that there is something to read in `current`, if there is anything at all.
  private mutating func advance() -> Bool {
    while self.current.readableBytes == 0 {
      guard let next = self.rest.popFirst() else {
        self.releaseIfDrained()
        return false
      }
      self.current = next
    }
    return true
  }

  /// Lets go of a chunk that was read, whose storage may be the transport's read buffer.
  private mutating func releaseIfDrained() {
    if self.current.readableBytes == 0 { self.current = ByteBuffer() }
  }
}
