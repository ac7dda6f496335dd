package import NIOCore

/// Reads the fields of a protobuf message one after the other, without knowing its type
/// (<https://protobuf.dev/programming-guides/encoding>).
package struct ProtobufReader {
  package typealias Field = (number: Int32, value: Value)

  package enum Value {
    case varint(UInt64)
    case fixed64(UInt64)
    case fixed32(UInt32)
    /// A string, bytes, a message, or packed numbers.
    case bytes(ByteBuffer)
    /// The fields of a group.
    case group(ByteBuffer)
  }

  private static let maximumDepth = 100

  private var bytes: ByteBuffer
  private var isMalformed = false

  package init(_ bytes: ByteBuffer) {
    self.bytes = bytes
  }

  /// Whether everything was read and was well-formed.
  package var isAtEnd: Bool { !self.isMalformed && self.bytes.readableBytes == 0 }

  /// The next field; nil at the end, and for malformed bytes.
  package mutating func next() -> Field? {
    guard !self.isMalformed, self.bytes.readableBytes > 0 else { return nil }
    guard let tag = self.tag(), let value = self.value(tag, depth: 0) else {
      self.isMalformed = true
      return nil
    }
    return (Int32(tag >> 3), value)
  }

  /// At most ten bytes, of which the last has one bit.
  package mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, through: 63, by: 7) {
      guard let byte = self.bytes.readInteger(as: UInt8.self), shift < 63 || byte <= 1 else { return nil }
      value |= UInt64(byte & 0x7f) << UInt64(shift)
      if byte < 0x80 { return value }
    }
    return nil
  }

  package mutating func fixed<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    self.bytes.readInteger(endianness: .little)
  }

  /// A field's number and wire type.
  private mutating func tag() -> UInt64? {
    self.varint().flatMap { (1...536_870_911).contains($0 >> 3) ? $0 : nil }
  }

  private mutating func value(_ tag: UInt64, depth: Int) -> Value? {
    switch tag & 7 {
    case 0: self.varint().map(Value.varint)
    case 1: self.fixed(UInt64.self).map(Value.fixed64)
    case 2:
      self.varint().flatMap(Int.init(exactly:)).flatMap { self.bytes.readSlice(length: $0) }.map(Value.bytes)
    case 3: self.group(tag, depth: depth).map(Value.group)
    case 5: self.fixed(UInt32.self).map(Value.fixed32)
    default: nil
    }
  }

  private mutating func group(_ start: UInt64, depth: Int) -> ByteBuffer? {
    guard depth < Self.maximumDepth else { return nil }
    let whole = self.bytes
    while true {
      let length = self.bytes.readerIndex - whole.readerIndex
      guard let tag = self.tag() else { return nil }
      // The end of the group that began with `start`.
      if tag == start + 1 { return whole.getSlice(at: whole.readerIndex, length: length) }
      guard self.value(tag, depth: depth + 1) != nil else { return nil }
    }
  }
}
