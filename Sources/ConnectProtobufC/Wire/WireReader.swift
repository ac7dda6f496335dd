internal import Connect

/// Reads protobuf's binary encoding piece by piece.
///
/// Invariant: `at` is never past `end`, and nothing at or past `end` is read. The caller keeps the bytes as long as
/// this value and all returned buffers.
struct WireReader {
  private typealias Position = UnsafePointer<UInt8>

  private var at: Position
  private let end: Position
  /// For errors.
  private let table: MessageTable

  /// nil if there are no bytes.
  @inline(__always)
  init?(_ bytes: UnsafeRawBufferPointer, of table: MessageTable) {
    guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
    self.at = start
    self.end = start + bytes.count
    self.table = table
  }

  @inline(__always) var isAtEnd: Bool { self.at >= self.end }

  /// The next field's number and wire type; must not be called at the end.
  @inline(__always)
  mutating func tag() throws(ConnectError) -> UInt32 {
    if self.at < self.end {
      let first = UInt32(self.at[0])
      if first < 0x80, first > 7 {
        self.at += 1
        return first
      }
    }
    return try self.longTag()
  }

  private mutating func longTag() throws(ConnectError) -> UInt32 {
    var tag: UInt32 = 0
    var shift: UInt32 = 0
    while true {
      guard self.at < self.end, shift <= 28 else {
        throw self.failure("a cut or too long tag")
      }
      let byte = UInt32(self.at[0])
      self.at += 1
      if shift == 28, byte > 0x0f { throw self.failure("a tag out of range") }
      tag |= (byte & 0x7f) << shift
      if byte < 0x80 { break }
      shift += 7
    }
    guard tag >> 3 != 0 else { throw self.failure("field number 0") }
    return tag
  }

  // MARK: Values

  /// - Parameter number: The field's number, here and below, for error messages.
  @inline(__always)
  mutating func varint(of number: UInt32) throws(ConnectError) -> UInt64 {
    if self.at < self.end, self.at[0] < 0x80 {
      defer { self.at += 1 }
      return UInt64(self.at[0])
    }
    return try self.longVarint(of: number)
  }

  private mutating func longVarint(of number: UInt32) throws(ConnectError) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while self.at < self.end, shift < 70 {
      let byte = UInt64(self.at[0])
      self.at += 1
      value |= (byte & 0x7f) << shift
      if byte < 0x80 { return value }
      shift += 7
    }
    throw self.failure("is a cut or too long varint", of: number)
  }

  /// A number of fixed size, in the byte order of the input.
  @inline(__always)
  mutating func fixed<Number: FixedWidthInteger & BitwiseCopyable>(
    _ type: Number.Type,
    of number: UInt32
  ) throws(ConnectError) -> Number {
    let size = MemoryLayout<Number>.size
    guard self.end - self.at >= size else {
      throw self.failure("is cut", of: number)
    }
    defer { self.at += size }
    return UnsafeRawPointer(self.at).loadUnaligned(as: type)
  }

  /// Length-prefixed bytes.
  mutating func content(of number: UInt32) throws(ConnectError) -> UnsafeRawBufferPointer {
    var length = 0
    if self.at < self.end, self.at[0] < 0x80 {
      length = Int(self.at[0])
      self.at += 1
    } else {
      length = try self.longLength(of: number)
    }
    guard length <= self.end - self.at else { throw self.cut(length, of: number) }
    defer { self.at += length }
    return UnsafeRawBufferPointer(start: self.at, count: length)
  }

  private mutating func longLength(of number: UInt32) throws(ConnectError) -> Int {
    var length = 0
    var shift = 0
    while true {
      guard self.at < self.end, shift <= 28 else {
        throw self.failure("has a cut or too long length", of: number)
      }
      let byte = Int(self.at[0])
      self.at += 1
      length |= (byte & 0x7f) << shift
      if byte < 0x80 { break }
      shift += 7
    }
    // Larger than any valid length, also in C.
    guard length <= Int32.max else { throw self.cut(length, of: number) }
    return length
  }

  /// Skips a value and returns its bytes.
  @discardableResult
  mutating func skip(wireType: UInt32, of number: UInt32) throws(ConnectError) -> UnsafeRawBufferPointer {
    let start = self.at
    switch wireType {
    case 0: _ = try self.varint(of: number)
    case 1: _ = try self.fixed(UInt64.self, of: number)
    case 2: _ = try self.content(of: number)
    case 5: _ = try self.fixed(UInt32.self, of: number)
    case 3, 4:
      throw self.failure("is a group, which libprotobuf-c does not have", of: number)
    default:
      throw self.failure("has the wire type \(wireType), which does not exist", of: number)
    }
    return UnsafeRawBufferPointer(start: start, count: self.at - start)
  }

  // MARK: Errors

  @inline(never)
  private func cut(_ length: Int, of number: UInt32) -> ConnectError {
    self.failure("is cut: \(self.end - self.at) of \(length) bytes", of: number)
  }

  @inline(never)
  private func failure(_ problem: String, of number: UInt32) -> ConnectError {
    self.failure("field \(number) \(problem)")
  }

  @inline(never)
  private func failure(_ problem: String) -> ConnectError {
    .undecodable("\(self.table.name): \(problem)")
  }
}
