/// The result of checking a string's bytes.
///
/// Invariant: only the given bytes are read, though eight at a time. A target gets at most as many bytes.
enum UTF8Check {
  case valid
  /// Valid, with a NUL in it, which no C string can hold.
  case containsNUL
  case invalid

  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else {
      self = .valid
      return
    }
    let count = bytes.count
    var index = 0
    while index + 8 <= count, Self.isPlain(start + index) { index += 8 }
    if index + 8 > count {
      // The rest, together with some bytes that were checked before.
      if count >= 8 {
        if index == count || Self.isPlain(start + count - 8) { index = count }
      } else {
        while index < count, bytes[index] &- 1 < 0x7f { index += 1 }
      }
    }
    self = index == count ? .valid : UTF8Check(slowly: start + index, count: count - index)
  }

  /// Checks bytes while it copies them.
  ///
  /// - Parameter target: Has room for as many bytes.
  @inline(__always)
  init(copying bytes: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer) {
    guard let start = bytes.baseAddress else {
      self = .valid
      return
    }
    let count = bytes.count
    var index = 0
    if count < 8 {
      while index < count {
        let byte = start.load(fromByteOffset: index, as: UInt8.self)
        guard byte &- 1 < 0x7f else { break }
        target.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
        index += 1
      }
    } else {
      while index + 8 <= count, Self.isPlain(UnsafeRawPointer(start + index)) {
        let word = (start + index).loadUnaligned(as: UInt64.self)
        target.storeBytes(of: word, toByteOffset: index, as: UInt64.self)
        index += 8
      }
      // The rest, together with some bytes that were checked before.
      if index + 8 > count, Self.isPlain(start + count - 8) {
        let word = (start + count - 8).loadUnaligned(as: UInt64.self)
        target.storeBytes(of: word, toByteOffset: count - 8, as: UInt64.self)
        index = count
      }
    }
    guard index < count else {
      self = .valid
      return
    }
    (target + index).copyMemory(from: start + index, byteCount: count - index)
    self = UTF8Check(slowly: start + index, count: count - index)
  }

  /// Whether eight readable bytes are all ASCII and not NUL.
  @inline(__always)
  private static func isPlain(_ bytes: UnsafeRawPointer) -> Bool {
    let word = bytes.loadUnaligned(as: UInt64.self)
    // Bytes of 0x80 and more, and bytes of 0, leave a bit here.
    return (word | (word &- 0x0101_0101_0101_0101)) & 0x8080_8080_8080_8080 == 0
  }

  /// The slow path, for text that is not ASCII.
  private init(slowly start: UnsafeRawPointer, count: Int) {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    var index = 0
    var hasNUL = false
    while index < count {
      let byte = bytes[index]
      if byte < 0x80 {
        if byte == 0 { hasNUL = true }
        index += 1
        while index + 8 <= count, Self.isPlain(start + index) { index += 8 }
        continue
      }
      let length = Self.length(at: index, in: bytes)
      guard length > 0 else {
        self = .invalid
        return
      }
      index += length
    }
    self = hasNUL ? .containsNUL : .valid
  }

  /// The length of the well-formed sequence at `index` (Unicode, table 3-7); 0 if there is none.
  private static func length(at index: Int, in bytes: UnsafeRawBufferPointer) -> Int {
    let first = bytes[index]
    let length: Int
    let second: ClosedRange<UInt8>
    switch first {
    case 0xc2...0xdf: (length, second) = (2, 0x80...0xbf)
    case 0xe0: (length, second) = (3, 0xa0...0xbf)
    case 0xed: (length, second) = (3, 0x80...0x9f)
    case 0xe1...0xef: (length, second) = (3, 0x80...0xbf)
    case 0xf0: (length, second) = (4, 0x90...0xbf)
    case 0xf1...0xf3: (length, second) = (4, 0x80...0xbf)
    case 0xf4: (length, second) = (4, 0x80...0x8f)
    default: return 0
    }
    guard index + length <= bytes.count, second.contains(bytes[index + 1]) else { return 0 }
    for offset in 2..<max(2, length) where bytes[index + offset] & 0xc0 != 0x80 { return 0 }
    return length
  }
}
