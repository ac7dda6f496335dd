import Foundation

/// The fields of an encoded message whose type is not known here.
struct WireFields {
  private let bytes: Data

  init(_ bytes: Data) {
    self.bytes = bytes
  }

  /// What field `number` holds, if it is a string, bytes or a message; of several the last.
  func lastBytes(of number: UInt64) -> Data? {
    var rest = self.bytes[...]
    var found: Data?
    while let tag = Self.varint(from: &rest) {
      switch tag & 7 {
      case 0: guard Self.varint(from: &rest) != nil else { return found }
      case 1: rest = rest.dropFirst(8)
      case 2:
        guard let count = Self.varint(from: &rest), count <= rest.count else { return found }
        if tag >> 3 == number { found = Data(rest.prefix(Int(count))) }
        rest = rest.dropFirst(Int(count))
      case 5: rest = rest.dropFirst(4)
      default: return found
      }
    }
    return found
  }

  private static func varint(from bytes: inout Data.SubSequence) -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      guard let byte = bytes.popFirst() else { return nil }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }
}
