internal import NIOCore

/// Follows a chunked body (RFC 9112, section 7.1) through the pieces in which it arrives.
///
/// NIO's decoder decodes the body. It bounds neither the size of a chunk, nor what may stand beside the content: leading
/// zeros, extensions, white space in trailers. So this refuses what is too much or unclear before the decoder sees it, and
/// finds the end of the body.
struct HTTP1Chunks {
  private enum Place {
    /// In the digits of a chunk's size.
    case size
    /// Behind these digits.
    case extensions
    case lineFeedOfSize
    case content
    case returnOfContent
    case lineFeedOfContent
    case startOfTrailer
    case trailer
    case lineFeedOfTrailer
    case lineFeedOfEnd
    case end
  }

  /// A message has at most 4 GiB, and peers cut messages into many chunks.
  private static let maximumSize = 1 << 32
  /// The most bytes of the line with a chunk's size.
  private static let maximumLine = 4096

  private let maximumTrailers: Int
  private var place = Place.size
  /// The number of bytes of the line with the size, or of the trailers.
  private var count = 0
  private var hasDigit = false
  /// The size of the chunk, and then what is left of it.
  private var size = 0

  /// - Parameter maximumTrailers: The most bytes of the trailers, with everything around names and values.
  init(maximumTrailers: Int) {
    self.maximumTrailers = maximumTrailers
  }

  /// Looks at the next bytes of the body.
  ///
  /// - Returns: How many of them may be decoded: all, or those up to the end of the body, or those in front of a fault.
  mutating func advance(over bytes: ByteBuffer) -> (count: Int, fault: String?) {
    bytes.withUnsafeReadableBytes { bytes in
      var index = 0
      while index < bytes.count, self.place != .end {
        if self.place == .content {
          let step = min(self.size, bytes.count - index)
          self.size -= step
          index += step
          if self.size == 0 { self.place = .returnOfContent }
        } else {
          if let fault = self.take(bytes[index]) { return (index, fault) }
          index += 1
        }
      }
      return (index, nil)
    }
  }

  private mutating func take(_ byte: UInt8) -> String? {
    self.count += 1
    switch self.place {
    case .size, .extensions, .lineFeedOfSize:
      guard self.count <= Self.maximumLine else {
        return "the line with the size of a chunk has more than \(Self.maximumLine) bytes"
      }
      return self.takeOfSizeLine(byte)
    case .startOfTrailer, .trailer, .lineFeedOfTrailer, .lineFeedOfEnd:
      guard self.count <= self.maximumTrailers else {
        return "the trailers of a chunked body have more than \(self.maximumTrailers) bytes"
      }
      return self.takeOfTrailers(byte)
    case .returnOfContent: return self.expect(0x0d, byte, then: .lineFeedOfContent)
    case .lineFeedOfContent:
      (self.count, self.hasDigit) = (0, false)
      return self.expect(0x0a, byte, then: .size)
    case .content, .end: return nil
    }
  }

  private mutating func takeOfSizeLine(_ byte: UInt8) -> String? {
    switch (self.place, byte) {
    case (.lineFeedOfSize, _):
      if self.size == 0 { self.count = 0 }
      return self.expect(0x0a, byte, then: self.size == 0 ? .startOfTrailer : .content)
    case (_, 0x0d) where self.hasDigit: self.place = .lineFeedOfSize
    case (.size, UInt8(ascii: ";")) where self.hasDigit, (.size, 0x20) where self.hasDigit,
      (.size, 0x09) where self.hasDigit:
      self.place = .extensions
    case (.size, _):
      guard let digit = Self.value(byte) else { return "a chunk has no size" }
      self.size = self.hasDigit ? self.size << 4 | digit : digit
      self.hasDigit = true
      guard self.size <= Self.maximumSize else {
        return "a chunk has a size of more than \(Self.maximumSize) bytes"
      }
    default:
      if Self.isControl(byte) { return "the extensions of a chunk have a control character" }
    }
    return nil
  }

  private mutating func takeOfTrailers(_ byte: UInt8) -> String? {
    switch (self.place, byte) {
    case (.lineFeedOfTrailer, _): return self.expect(0x0a, byte, then: .startOfTrailer)
    case (.lineFeedOfEnd, _): return self.expect(0x0a, byte, then: .end)
    case (.startOfTrailer, 0x0d): self.place = .lineFeedOfEnd
    case (_, 0x0d): self.place = .lineFeedOfTrailer
    case (_, _) where Self.isControl(byte): return "the trailers of a chunked body have a control character"
    default: self.place = .trailer
    }
    return nil
  }

  private mutating func expect(_ expected: UInt8, _ byte: UInt8, then next: Place) -> String? {
    guard byte == expected else { return "a chunk does not end where its size says" }
    self.place = next
    return nil
  }

  private static func isControl(_ byte: UInt8) -> Bool { (byte < 0x20 && byte != 0x09) || byte == 0x7f }

  private static func value(_ digit: UInt8) -> Int? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(digit - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(digit - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(digit - UInt8(ascii: "A")) + 10
    default: nil
    }
  }
}
