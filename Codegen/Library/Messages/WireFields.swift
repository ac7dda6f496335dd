import Foundation

/// The fields of an encoded message whose type is not known here.
struct WireFields {
  private let bytes: Data

  init(_ bytes: Data) {
    self.bytes = bytes
  }

  /// The last value of field `number` that is a string, bytes or a message.
  func lastBytes(of number: UInt64) -> Data? {
    var found: Data?
    self.forEach { field, value in
      if field == number, case .bytes(let bytes) = value { found = bytes }
    }
    return found
  }

  /// The last value of field `number` that is a Boolean.
  func lastFlag(of number: UInt64) -> Bool? {
    var found: Bool?
    self.forEach { field, value in
      if field == number, case .varint(let varint) = value { found = varint != 0 }
    }
    return found
  }

  private enum Value {
    case varint(UInt64)
    case bytes(Data)
  }

  /// Ends at the first bytes that are not a field.
  private func forEach(_ body: (_ number: UInt64, Value) -> Void) {
    var rest = self.bytes[...]
    while let tag = Self.varint(from: &rest) {
      switch tag & 7 {
      case 0:
        guard let varint = Self.varint(from: &rest) else { return }
        body(tag >> 3, .varint(varint))
      case 1: rest = rest.dropFirst(8)
      case 2:
        guard let count = Self.varint(from: &rest), count <= rest.count else { return }
        body(tag >> 3, .bytes(Data(rest.prefix(Int(count)))))
        rest = rest.dropFirst(Int(count))
      case 5: rest = rest.dropFirst(4)
      default: return
      }
    }
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
