internal import DequeModule
package import NIOCore

/// Cuts a body into ``Envelope``s, wherever its chunks begin and end.
///
/// A message within one chunk is a slice of the chunk, unless it is small and has to wait. A message that spans chunks
/// is assembled as they arrive. So each message is copied at most once; above ``maximumReservation``, its buffer also
/// moves as it grows. Waiting messages hold at most a few times their bytes.
///
/// Limits are checked on the prefix, before anything is buffered for the message. The protocol interprets all flags but
/// one: the flag of the last envelope (end-of-stream, trailers), which has a separate limit.
package struct EnvelopeDecoder: Sendable {
  /// The most that is reserved for a message because of its prefix alone, in bytes; more is reserved as more arrives.
  static let maximumReservation = 4 << 20
  /// Smaller pieces that have to wait are copied, so that they do not retain a read buffer.
  static let smallSize = 1024
  /// How many bytes of small envelopes are gathered in one buffer.
  private static let gatheredSize = 16 * 1024

  private let maximumMessageSize: Int
  private let endFlag: UInt8
  private let maximumEndSize: Int
  private let buffers: BodyBuffers?

  /// Whole envelopes, the next one in front.
  private var current = ByteBuffer()
  /// Whether ``current`` is in a chunk's storage, which may be the transport's read buffer.
  private var isCurrentShared = false
  /// The pieces after ``current``.
  private var waiting = Deque<Piece>()
  /// Small envelopes after ``waiting``, copied one after the other.
  private var gathered = ByteBuffer()
  /// The envelope after all of these, if only a part of it has arrived.
  private(set) var partial: Partial?
  /// The error after all of these.
  private var failure: ConnectError?

  /// The bytes received and not yet handed out, prefixes included.
  package private(set) var bufferedByteCount = 0

  private enum Piece: Sendable {
    /// One or more, each one whole, with their prefixes.
    case envelopes(ByteBuffer)
    case envelope(Envelope)
  }

  struct Partial: Sendable {
    /// The bytes of the prefix, the last one lowest.
    private var prefix: UInt64 = 0
    private var prefixCount = 0
    /// What has arrived of the message.
    private(set) var message = ByteBuffer()

    var isPrefixComplete: Bool { self.prefixCount == Envelope.prefixLength }
    var flags: UInt8 { UInt8(truncatingIfNeeded: self.prefix >> 32) }
    var length: Int { Int(UInt32(truncatingIfNeeded: self.prefix)) }
    var isComplete: Bool { self.isPrefixComplete && self.message.readableBytes == self.length }

    mutating func readPrefix(from bytes: inout ByteBuffer) {
      while !self.isPrefixComplete, let byte = bytes.readInteger(as: UInt8.self) {
        self.prefix = self.prefix << 8 | UInt64(byte)
        self.prefixCount += 1
      }
    }

    mutating func readMessage(from bytes: inout ByteBuffer, buffers: BodyBuffers?) {
      let missing = self.length - self.message.readableBytes
      guard var piece = bytes.readSlice(length: min(missing, bytes.readableBytes)), piece.readableBytes > 0
      else { return }
      if piece.readableBytes == self.length, self.length >= EnvelopeDecoder.smallSize {
        self.message = piece
      } else {
        if self.message.capacity == 0 {
          self.message = buffers.buffer(size: min(self.length, EnvelopeDecoder.maximumReservation))
        }
        self.message.writeBuffer(&piece)
      }
    }
  }

  /// - Parameters:
  ///   - maximumMessageSize: The limit for a message, in bytes.
  ///   - endFlag: The flag of the envelope that ends the body; 0 if there is no such.
  ///   - maximumEndSize: The limit for that envelope's message, in bytes.
  package init(maximumMessageSize: Int, endFlag: UInt8 = 0, maximumEndSize: Int = 0) {
    self.init(
      maximumMessageSize: maximumMessageSize,
      endFlag: endFlag,
      maximumEndSize: maximumEndSize,
      buffers: nil
    )
  }

  /// - Parameter buffers: Where memory for messages that span chunks comes from.
  init(maximumMessageSize: Int, endFlag: UInt8, maximumEndSize: Int, buffers: BodyBuffers?) {
    self.maximumMessageSize = maximumMessageSize
    self.endFlag = endFlag
    self.maximumEndSize = maximumEndSize
    self.buffers = buffers
  }

  /// Takes the next chunk of the body. Nothing more is kept once ``next()`` is certain to throw.
  package mutating func receive(_ bytes: ByteBuffer) {
    guard self.failure == nil else { return }
    var bytes = bytes
    self.bufferedByteCount += bytes.readableBytes
    do throws(ConnectError) {
      if self.partial != nil { try self.continuePartial(with: &bytes) }
      if let envelopes = self.readWholeEnvelopes(from: &bytes) { self.append(envelopes) }
      if bytes.readableBytes > 0 {
        self.partial = Partial()
        try self.continuePartial(with: &bytes)
      }
    } catch {
      self.failure = error
      self.partial = nil
    }
  }

  /// The next envelope; nil if more has to arrive.
  ///
  /// - Throws: ``ConnectError`` with `resource_exhausted` if the message is larger than the limit. The decoder is
  ///   unusable afterwards.
  package mutating func next() throws(ConnectError) -> Envelope? {
    while self.current.readableBytes == 0 {
      switch self.waiting.popFirst() {
      case .envelopes(let envelopes):
        self.current = envelopes
      case .envelope(let envelope):
        self.bufferedByteCount -= Envelope.prefixLength + envelope.message.readableBytes
        return envelope
      case nil:
        guard self.gathered.readableBytes > 0 else {
          if let failure = self.failure { throw failure }
          return nil
        }
        swap(&self.current, &self.gathered)
      }
    }
    guard let (flags, length) = self.current.readMultipleIntegers(as: (UInt8, UInt32).self),
      let message = length == 0 ? ByteBuffer() : self.current.readSlice(length: Int(length))
    else { return nil }
    // The chunk's storage may be the transport's read buffer.
    if self.current.readableBytes == 0 { self.current = ByteBuffer() }
    self.bufferedByteCount -= Envelope.prefixLength + message.readableBytes
    return Envelope(flags: flags, message: message)
  }

  /// The message of the next envelope, if it has arrived completely and has no flags; else nil, and nothing changes.
  mutating func nextPlainMessage() -> ByteBuffer? {
    if self.current.readableBytes == 0 {
      guard self.waiting.isEmpty, self.gathered.readableBytes > 0 else { return nil }
      swap(&self.current, &self.gathered)
    }
    let start = self.current.readerIndex
    guard self.current.getInteger(at: start, as: UInt8.self) == 0,
      let length = self.current.getInteger(at: start + 1, as: UInt32.self).map({ Int($0) }), length > 0
    else { return nil }
    let size = Envelope.prefixLength + length
    guard let message = self.current.getSlice(at: start + Envelope.prefixLength, length: length) else {
      return nil
    }
    if self.current.readableBytes == size {
      self.current = ByteBuffer()
    } else {
      self.current.moveReaderIndex(forwardBy: size)
    }
    self.bufferedByteCount -= size
    return message
  }

  /// Releases the chunk that arrived last, if few of its bytes have to wait.
  mutating func settle() {
    guard self.isCurrentShared else { return }
    self.isCurrentShared = false
    let count = self.current.readableBytes
    guard count > 0, count < Self.smallSize else { return }
    var copy = ByteBuffer()
    copy.writeImmutableBuffer(self.current)
    self.current = copy
  }

  /// Drops what is buffered.
  mutating func discard() {
    self.current = ByteBuffer()
    self.waiting.removeAll()
    self.gathered = ByteBuffer()
    self.partial = nil
    self.bufferedByteCount = 0
  }

  // MARK: Receiving

  /// Adds the missing bytes of the partial envelope, as far as `bytes` has them.
  private mutating func continuePartial(with bytes: inout ByteBuffer) throws(ConnectError) {
    // Taken out, so that its message is written in place.
    guard var partial = self.partial.take() else { return }
    if !partial.isPrefixComplete {
      partial.readPrefix(from: &bytes)
      if partial.isPrefixComplete, !self.accepts(length: partial.length, flags: partial.flags) {
        throw self.tooLarge(partial)
      }
    }
    if partial.isPrefixComplete { partial.readMessage(from: &bytes, buffers: self.buffers) }
    if partial.isComplete {
      self.wait(.envelope(Envelope(flags: partial.flags, message: partial.message)))
    } else {
      self.partial = partial
    }
  }

  /// The envelopes at the start of `bytes` that are whole and within their limits; nil if there is none.
  private func readWholeEnvelopes(from bytes: inout ByteBuffer) -> ByteBuffer? {
    var end = bytes.readerIndex
    while let flags = bytes.getInteger(at: end, as: UInt8.self),
      let length = bytes.getInteger(at: end + 1, as: UInt32.self).map({ Int($0) }),
      bytes.writerIndex - end - Envelope.prefixLength >= length,
      self.accepts(length: length, flags: flags)
    {
      end += Envelope.prefixLength + length
    }
    return end > bytes.readerIndex ? bytes.readSlice(length: end - bytes.readerIndex) : nil
  }

  private mutating func append(_ envelopes: ByteBuffer) {
    if self.current.readableBytes == 0 && self.waiting.isEmpty && self.gathered.readableBytes == 0 {
      self.current = envelopes
      self.isCurrentShared = true
    } else if envelopes.readableBytes < Self.smallSize {
      self.gather(envelopes)
    } else {
      self.wait(.envelopes(envelopes))
    }
  }

  private mutating func wait(_ piece: Piece) {
    if self.gathered.readableBytes > 0 {
      self.waiting.append(.envelopes(self.gathered))
      self.gathered = ByteBuffer()
    }
    self.waiting.append(piece)
  }

  private mutating func gather(_ envelopes: ByteBuffer) {
    if self.gathered.readableBytes + envelopes.readableBytes > Self.gatheredSize {
      self.waiting.append(.envelopes(self.gathered))
      self.gathered = ByteBuffer()
    }
    // The earlier envelopes were handed out.
    if self.gathered.readableBytes == 0 { self.gathered = ByteBuffer() }
    self.gathered.writeImmutableBuffer(envelopes)
  }

  // MARK: Limits

  private func isEnd(flags: UInt8) -> Bool { self.endFlag != 0 && flags & self.endFlag != 0 }

  private func limit(flags: UInt8) -> Int {
    self.isEnd(flags: flags) ? self.maximumEndSize : self.maximumMessageSize
  }

  private func accepts(length: Int, flags: UInt8) -> Bool {
    let limit = self.limit(flags: flags)
    // The limit applies to the decompressed message, and is checked again when it is decompressed.
    let isCompressed = flags & Envelope.compressedFlag != 0
    return length <= (isCompressed ? ResponseEncoding.maximumCompressedSize(of: limit) : limit)
  }

  private func tooLarge(_ envelope: Partial) -> ConnectError {
    let size = "\(envelope.length) bytes"
    guard self.isEnd(flags: envelope.flags) else {
      return MessageSizeErrors.received(size, limit: self.maximumMessageSize)
    }
    return .overLimit(
      "received end of the response of \(size), which is over the limit of \(self.maximumEndSize) bytes"
    )
  }
}
