/// Reads the fields of a protobuf message one after the other
/// (<https://protobuf.dev/programming-guides/encoding>).
struct ProtobufReader {
  enum Value: Equatable {
    case varint(UInt64)
    case fixed64(UInt64)
    case bytes(ArraySlice<UInt8>)
    case fixed32(UInt32)
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    self.rest = bytes
  }

  var isAtEnd: Bool { self.rest.isEmpty }

  /// The next field; nil if the bytes break the format. Groups, which proto3 does not have, count as broken.
  mutating func next() -> (number: UInt64, value: Value)? {
    guard let tag = self.varint(), (1...536_870_911).contains(tag >> 3) else { return nil }
    let value: Value?
    switch tag & 7 {
    case 0: value = self.varint().map(Value.varint)
    case 1: value = self.fixed(8).map(Value.fixed64)
    case 2: value = self.varint().flatMap { self.bytes($0) }.map(Value.bytes)
    case 5: value = self.fixed(4).map { .fixed32(UInt32(truncatingIfNeeded: $0)) }
    default: value = nil
    }
    return value.map { (tag >> 3, $0) }
  }

  /// At most ten bytes, of which the last has one bit.
  private mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, through: 63, by: 7) {
      guard let byte = self.rest.popFirst(), shift < 63 || byte <= 1 else { return nil }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }

  /// Little-endian.
  private mutating func fixed(_ count: Int) -> UInt64? {
    guard let bytes = self.bytes(UInt64(count)) else { return nil }
    return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func bytes(_ count: UInt64) -> ArraySlice<UInt8>? {
    guard count <= UInt64(self.rest.count) else { return nil }
    defer { self.rest = self.rest.dropFirst(Int(count)) }
    return self.rest.prefix(Int(count))
  }
}
