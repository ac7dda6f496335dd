/// A field of an encoded message whose type the generated code does not know.
struct WireField {
  enum Value {
    case varint(UInt64)
    case fixed64(UInt64)
    case fixed32(UInt32)
    /// A string, bytes, a message, or packed numbers.
    case bytes(ArraySlice<UInt8>)
    /// A message.
    case group(ArraySlice<UInt8>)
  }

  let number: Int32
  let value: Value

  /// - Returns: Nil if the bytes are not a message.
  static func all(in bytes: ArraySlice<UInt8>) -> [WireField]? {
    var reader = WireFieldReader(rest: bytes)
    var fields: [WireField] = []
    while !reader.rest.isEmpty {
      guard let field = reader.next() else { return nil }
      fields.append(field)
    }
    return fields
  }
}

extension WireField {
  /// The extension in an item of a message set, as a field.
  static func item(_ bytes: ArraySlice<UInt8>) -> WireField? {
    guard let parts = self.all(in: bytes) else { return nil }
    var number: Int32?
    var message: ArraySlice<UInt8> = []
    for part in parts {
      switch (part.number, part.value) {
      case (2, .varint(let bits)): number = Int32(exactly: bits)
      case (3, .bytes(let bytes)): message = bytes
      default: return nil
      }
    }
    return number.map { WireField(number: $0, value: .bytes(message)) }
  }
}

/// Reads fields one by one.
struct WireFieldReader {
  private static let mostGroups = 100

  var rest: ArraySlice<UInt8>

  /// - Returns: Nil if the next bytes are not a field.
  mutating func next(depth: Int = 0) -> WireField? {
    guard let tag = self.varint(), let number = Int32(exactly: tag >> 3), number > 0 else { return nil }
    switch tag & 7 {
    case 0: return self.varint().map { WireField(number: number, value: .varint($0)) }
    case 1: return self.fixed(8).map { WireField(number: number, value: .fixed64($0)) }
    case 2:
      guard let length = self.varint(), length <= UInt64(self.rest.count) else { return nil }
      let bytes = self.rest.prefix(Int(length))
      self.rest = self.rest.dropFirst(Int(length))
      return WireField(number: number, value: .bytes(bytes))
    case 3: return self.group(number, depth: depth)
    case 5: return self.fixed(4).map { WireField(number: number, value: .fixed32(UInt32($0))) }
    default: return nil
    }
  }

  private mutating func group(_ number: Int32, depth: Int) -> WireField? {
    guard depth < Self.mostGroups else { return nil }
    let whole = self.rest
    while true {
      let before = self.rest
      guard let tag = self.varint() else { return nil }
      if tag & 7 == 4 {
        guard tag >> 3 == UInt64(number) else { return nil }
        return WireField(number: number, value: .group(whole[whole.startIndex..<before.startIndex]))
      }
      self.rest = before
      guard self.next(depth: depth + 1) != nil else { return nil }
    }
  }

  mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 70, by: 7) {
      guard let byte = self.rest.popFirst() else { return nil }
      value |= UInt64(byte & 0x7f) << UInt64(shift)
      if byte < 0x80 { return value }
    }
    return nil
  }

  mutating func fixed(_ size: Int) -> UInt64? {
    guard self.rest.count >= size else { return nil }
    let value = self.rest.prefix(size).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.rest = self.rest.dropFirst(size)
    return value
  }
}
