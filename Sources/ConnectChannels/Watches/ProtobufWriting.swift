internal import NIOCore

extension ByteBuffer {
  /// Appends a number as protobuf does (<https://protobuf.dev/programming-guides/encoding>).
  mutating func writeVarint(_ number: UInt64) {
    var number = number
    while number >= 0x80 {
      self.writeInteger(UInt8(truncatingIfNeeded: number) | 0x80)
      number >>= 7
    }
    self.writeInteger(UInt8(number))
  }
}
