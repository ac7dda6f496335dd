import NIOCore

/// Splits consecutive JSON values, on separate lines or not, that come in pieces of any size.
///
/// It looks only at brackets and strings: whoever reads a value checks whether it is valid.
struct JSONSplitter {
  /// A value that is larger is an error.
  static let maximumSize = 256 << 20

  struct TooLarge: Error {}

  private var bytes = ByteBuffer()
  /// How many bytes of the present value were scanned; 0 before it.
  private var scanned = 0
  private var depth = 0
  private var isInString = false
  private var isEscaped = false

  mutating func append(_ bytes: ByteBuffer) {
    var bytes = bytes
    self.bytes.discardReadBytes()
    self.bytes.writeBuffer(&bytes)
  }

  /// The next complete value; nil if more bytes are needed.
  mutating func next() throws -> ByteBuffer? {
    if self.scanned == 0 {
      self.skipSpace()
      if self.mayBecomeMark { return nil }
    }
    let start = self.bytes.readerIndex
    while start + self.scanned < self.bytes.writerIndex {
      guard let byte = self.bytes.getInteger(at: start + self.scanned, as: UInt8.self) else { break }
      if self.depth == 0, !self.isInString, self.scanned > 0, self.endsScalar(byte) {
        return self.take(self.scanned)
      }
      self.scanned += 1
      if self.isInString {
        self.lookInString(byte)
        if !self.isInString, self.depth == 0 { return self.take(self.scanned) }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): self.isInString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): self.depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        self.depth -= 1
        if self.depth <= 0 { return self.take(self.scanned) }
      default: break
      }
    }
    if self.scanned > Self.maximumSize { throw TooLarge() }
    return nil
  }

  /// The rest at the end of the input; nil if it is empty.
  mutating func finish() -> ByteBuffer? {
    if self.scanned == 0 { self.skipSpace() }
    return self.bytes.readableBytes == 0 ? nil : self.take(self.bytes.readableBytes)
  }

  private mutating func lookInString(_ byte: UInt8) {
    if self.isEscaped {
      self.isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      self.isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      self.isInString = false
    }
  }

  private func endsScalar(_ byte: UInt8) -> Bool {
    Self.isSpace(byte) || byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\"")
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

  /// Some editors put a byte order mark in front of a file (RFC 8259, section 8.1).
  private static let mark: [UInt8] = [0xef, 0xbb, 0xbf]

  private mutating func skipSpace() {
    while true {
      let count = self.bytes.readableBytesView.prefix { Self.isSpace($0) }.count
      self.bytes.moveReaderIndex(forwardBy: count)
      guard self.bytes.readableBytesView.starts(with: Self.mark) else { return }
      self.bytes.moveReaderIndex(forwardBy: Self.mark.count)
    }
  }

  /// Whether the first bytes of a mark are there, and nothing else.
  private var mayBecomeMark: Bool {
    let count = self.bytes.readableBytes
    return count > 0 && count < Self.mark.count && Self.mark.starts(with: self.bytes.readableBytesView)
  }

  private mutating func take(_ count: Int) -> ByteBuffer? {
    self.scanned = 0
    self.depth = 0
    self.isInString = false
    self.isEscaped = false
    return self.bytes.readSlice(length: count)
  }
}
