internal import CProtobufC
internal import Connect

/// Reads protobuf's binary encoding piece by piece. Nothing is read at or past `end`.
struct WireReader {
  typealias Position = UnsafePointer<UInt8>

  var at: Position
  let end: Position
  /// For errors.
  let descriptor: MessageDescriptorPointer

  @inline(__always)
  mutating func tag() throws(ConnectError) -> UInt32 {
    let first = UInt32(self.at[0])
    if first < 0x80, first > 7 {
      self.at += 1
      return first
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

  @inline(__always)
  mutating func varint(_ number: UInt32) throws(ConnectError) -> UInt64 {
    if self.at < self.end, self.at[0] < 0x80 {
      defer { self.at += 1 }
      return UInt64(self.at[0])
    }
    return try self.longVarint(number)
  }

  private mutating func longVarint(_ number: UInt32) throws(ConnectError) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while self.at < self.end, shift < 70 {
      let byte = UInt64(self.at[0])
      self.at += 1
      value |= (byte & 0x7f) << shift
      if byte < 0x80 { return value }
      shift += 7
    }
    throw self.failure(number, "is a cut or too long varint")
  }

  /// So many bytes.
  mutating func bytes(_ count: Int, _ number: UInt32) throws(ConnectError) -> UnsafeRawPointer {
    guard self.end - self.at >= count else {
      throw self.failure(number, "is cut")
    }
    defer { self.at += count }
    return UnsafeRawPointer(self.at)
  }

  /// Bytes with their length in front.
  mutating func content(_ number: UInt32) throws(ConnectError) -> UnsafeRawBufferPointer {
    var length = 0
    if self.at < self.end, self.at[0] < 0x80 {
      length = Int(self.at[0])
      self.at += 1
    } else {
      length = try self.longLength(number)
    }
    guard length <= self.end - self.at else { throw self.cut(number, length) }
    defer { self.at += length }
    return UnsafeRawBufferPointer(start: self.at, count: length)
  }

  @inline(never)
  private func cut(_ number: UInt32, _ length: Int) -> ConnectError {
    self.failure(number, "is cut: \(self.end - self.at) of \(length) bytes")
  }

  private mutating func longLength(_ number: UInt32) throws(ConnectError) -> Int {
    var length = 0
    var shift = 0
    while true {
      guard self.at < self.end, shift <= 28 else {
        throw self.failure(number, "has a cut or too long length")
      }
      let byte = Int(self.at[0])
      self.at += 1
      length |= (byte & 0x7f) << shift
      if byte < 0x80 { break }
      shift += 7
    }
    // More than a length can be, also for C's.
    guard length <= Int32.max else { throw self.cut(number, length) }
    return length
  }

  /// Passes over a field's value.
  mutating func skip(_ wireType: UInt32, _ number: UInt32) throws(ConnectError) {
    switch wireType {
    case 0: _ = try self.varint(number)
    case 1: _ = try self.bytes(8, number)
    case 2: _ = try self.content(number)
    case 5: _ = try self.bytes(4, number)
    case 3, 4:
      throw self.failure(number, "is a group, which libprotobuf-c does not have")
    default:
      throw self.failure(number, "has the wire type \(wireType), which does not exist")
    }
  }

  @inline(never)
  private func failure(_ number: UInt32, _ problem: String) -> ConnectError {
    self.failure("field \(number) \(problem)")
  }

  @inline(never)
  private func failure(_ problem: String) -> ConnectError {
    .undecodable("\(self.descriptor.fullName): \(problem)")
  }
}
