internal import Connect
internal import NIOCore

/// A growing JSON text.
///
/// Invariant: `start` points to `capacity` bytes that only this value owns; the first `count` bytes are written.
/// ``reserve(_:)`` makes room before bytes are written.
struct JSONWriter: ~Copyable {
  private var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private var count = 0

  init(capacity: Int = 1024) {
    self.start = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  deinit {
    self.start.deallocate()
  }

  /// The text, with room in front for an envelope.
  var bytes: ByteBuffer {
    var buffer = ByteBuffer(withHeadroomFor: self.count)
    buffer.writeBytes(UnsafeRawBufferPointer(start: self.start, count: self.count))
    return buffer
  }

  /// `"name":`
  static func key(_ name: String) -> [UInt8] {
    var writer = JSONWriter(capacity: 64)
    Array(name.utf8).withUnsafeBytes { writer.string($0) }
    writer.byte(UInt8(ascii: ":"))
    return Array(UnsafeBufferPointer(start: writer.start, count: writer.count))
  }

  /// Makes room for `count` more bytes.
  @inline(__always)
  private mutating func reserve(_ count: Int) {
    if self.capacity - self.count < count { self.grow(by: count) }
  }

  private mutating func grow(by count: Int) {
    let capacity = max(2 * self.capacity, self.count + count)
    let start = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    start.update(from: self.start, count: self.count)
    self.start.deallocate()
    self.start = start
    self.capacity = capacity
  }

  @inline(__always)
  mutating func byte(_ byte: UInt8) {
    self.reserve(1)
    self.start[self.count] = byte
    self.count += 1
  }

  @inline(__always)
  mutating func raw(_ text: StaticString) {
    self.raw(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func raw(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { self.raw($0) }
  }

  mutating func raw(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    self.reserve(bytes.count)
    UnsafeMutableRawPointer(self.start + self.count).copyMemory(from: source, byteCount: bytes.count)
    self.count += bytes.count
  }

  // MARK: Values

  mutating func unsigned(_ value: UInt64) {
    let longest = 20
    self.reserve(longest)
    let place = self.start + self.count
    var rest = value
    var index = longest
    repeat {
      index -= 1
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      place[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
      rest = quotient
    } while rest > 0
    place.update(from: place + index, count: longest - index)
    self.count += longest - index
  }

  mutating func signed(_ value: Int64) {
    if value < 0 { self.byte(UInt8(ascii: "-")) }
    self.unsigned(value.magnitude)
  }

  mutating func quotedUnsigned(_ value: UInt64) {
    self.byte(UInt8(ascii: "\""))
    self.unsigned(value)
    self.byte(UInt8(ascii: "\""))
  }

  mutating func quotedSigned(_ value: Int64) {
    self.byte(UInt8(ascii: "\""))
    self.signed(value)
    self.byte(UInt8(ascii: "\""))
  }

  /// `value` with this number of digits, zeros in front.
  mutating func padded(_ value: Int, digits: Int) {
    var divisor = 1
    for _ in 1..<max(1, digits) { divisor *= 10 }
    while divisor > 0 {
      self.byte(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / divisor % 10))
      divisor /= 10
    }
  }

  /// The shortest text for the number; `"NaN"`, `"Infinity"` and `"-Infinity"` for values that JSON lacks.
  mutating func double(_ value: Double) {
    if let integer = Int64(exactly: value), integer.magnitude < 1 << 53, value.sign == .plus || integer != 0 {
      self.signed(integer)
    } else {
      self.float(value)
    }
  }

  mutating func float<F: BinaryFloatingPoint & CustomStringConvertible>(_ value: F) {
    if value.isNaN {
      self.raw("\"NaN\"")
    } else if value.isInfinite {
      self.raw(value > 0 ? "\"Infinity\"" : "\"-Infinity\"")
    } else {
      var text = value.description
      if text.hasSuffix(".0") { text.removeLast(2) }
      text.withUTF8 { self.raw(UnsafeRawBufferPointer($0)) }
    }
  }

  mutating func base64(_ bytes: UnsafeRawBufferPointer) {
    self.byte(UInt8(ascii: "\""))
    let length = Base64.encodedLength(bytes.count)
    self.reserve(length)
    self.count += Base64.encode(
      bytes,
      to: UnsafeMutableRawBufferPointer(start: self.start + self.count, count: length),
      alphabet: .standard,
      isPadded: true
    )
    self.byte(UInt8(ascii: "\""))
  }

  mutating func string(_ text: String) {
    var text = text
    text.withUTF8 { self.string(UnsafeRawBufferPointer($0)) }
  }

  /// A string of valid UTF-8.
  mutating func string(_ bytes: UnsafeRawBufferPointer) {
    self.reserve(bytes.count + 2)
    self.byte(UInt8(ascii: "\""))
    var run = 0
    while true {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[run...])
      let count = JSONPlainText.count(in: rest, escapingDelete: true)
      self.raw(UnsafeRawBufferPointer(rebasing: rest[..<count]))
      guard count < rest.count else { break }
      self.escape(rest[count])
      run += count + 1
    }
    self.byte(UInt8(ascii: "\""))
  }

  private mutating func escape(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): self.raw("\\\"")
    case UInt8(ascii: "\\"): self.raw("\\\\")
    case 8: self.raw("\\b")
    case 9: self.raw("\\t")
    case 10: self.raw("\\n")
    case 12: self.raw("\\f")
    case 13: self.raw("\\r")
    default:
      self.raw(byte < 0x10 ? "\\u000" : byte < 0x20 ? "\\u001" : "\\u007")
      let low = byte & 0xf
      self.byte(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
    }
  }
}
