/// The outcome of a test of a byte. Outcomes are combined without branches, so that a loop over a text takes many bytes at a
/// time.
struct ByteTest {
  private let bit: UInt8

  @inline(__always)
  init(_ isTrue: Bool) {
    self.bit = isTrue ? 1 : 0
  }

  @inline(__always)
  private init(bit: UInt8) {
    self.bit = bit
  }

  @inline(__always)
  var isTrue: Bool { self.bit != 0 }

  @inline(__always)
  static func & (lhs: ByteTest, rhs: ByteTest) -> ByteTest { ByteTest(bit: lhs.bit & rhs.bit) }

  @inline(__always)
  static func | (lhs: ByteTest, rhs: ByteTest) -> ByteTest { ByteTest(bit: lhs.bit | rhs.bit) }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether a test holds for any byte. All bytes are tested, without an early exit.
  @inline(__always)
  func hasByte(_ test: (UInt8) -> ByteTest) -> Bool {
    var found = ByteTest(false)
    for byte in self { found = found | test(byte) }
    return found.isTrue
  }
}
