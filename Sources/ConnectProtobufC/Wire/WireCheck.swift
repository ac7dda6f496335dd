internal import CProtobufC
internal import Connect

/// Looks at protobuf's binary encoding before libprotobuf-c decodes it, for what that would do wrong or in silence:
/// crash on deep nesting, cut strings at a NUL, let invalid UTF-8 pass, merge messages wrongly, read a Boolean from any
/// bytes. It also foresees the memory that the message will take.
struct WireCheck {
  private typealias Field = UnsafePointer<ProtobufCFieldDescriptor>
  private typealias Position = UnsafePointer<UInt8>

  /// `ScannedMember` of libprotobuf-c, of which a decode keeps a number on its stack and takes the others from the
  /// allocator.
  private enum Scan {
    static let memberSize = 32
    static let membersOnStack = 16
  }

  private let maximumDepth: Int
  /// How many bytes the arena will give out, about.
  private(set) var memory = 0

  init(limits: DecodingLimits) {
    self.maximumDepth = limits.maximumDepth
  }

  mutating func check(
    _ bytes: UnsafeRawBufferPointer,
    _ descriptor: MessageDescriptorPointer
  ) throws(ConnectError) {
    guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      self.memory = Arena.rounded(descriptor.pointee.sizeof_message)
      return
    }
    try self.checkMessage(start, start + bytes.count, descriptor, depth: 0)
  }

  private mutating func checkMessage(
    _ start: Position,
    _ end: Position,
    _ descriptor: MessageDescriptorPointer,
    depth: Int
  ) throws(ConnectError) {
    guard depth < self.maximumDepth else {
      throw .undecodable(
        "\(descriptor.fullName): more than \(self.maximumDepth) nested messages",
        .resourceExhausted
      )
    }
    self.memory += Arena.rounded(descriptor.pointee.sizeof_message) + 64
    let fields = descriptor.pointee.fields
    let fieldCount = Int(descriptor.pointee.n_fields)
    var nextIndex = 0
    var memberCount = 0
    var seen = FieldSet()
    var at = start
    while at < end {
      let tag = try Self.tag(&at, end, descriptor)
      let wireType = tag & 7
      let body = try Self.body(&at, end, wireType, number: tag >> 3, descriptor)
      memberCount += 1

      guard let fields, let index = Self.index(of: tag >> 3, fields, fieldCount, from: nextIndex) else {
        self.memory += MemoryLayout<ProtobufCMessageUnknownField>.stride + Arena.rounded(body.whole)
        continue
      }
      let field = fields + index
      nextIndex = index
      let kind = field.pointee.kind
      let isRepeated = field.pointee.isRepeated
      if isRepeated, kind.isPackable, wireType == 2 {
        self.memory += try Self.packedCount(body.content, kind, descriptor, field) * kind.size
        continue
      }
      guard wireType == kind.wireType else {
        throw .undecodable("\(descriptor.name(of: field)): wrong wire type \(wireType)")
      }
      if isRepeated { self.memory += kind.size }
      switch kind {
      case .string:
        try Self.checkText(body.content, descriptor, field)
        self.memory += Arena.rounded(body.content.count + 1)
      case .bytes:
        if field.pointee.isStringAsBytes { try Self.checkText(body.content, descriptor, field) }
        self.memory += Arena.rounded(body.content.count)
      case .message:
        if !isRepeated, !seen.insert(index) {
          throw .undecodable("\(descriptor.name(of: field)): sent twice, which libprotobuf-c does not merge")
        }
        guard let inner = field.pointee.messageDescriptor, let start = body.content.baseAddress else {
          continue
        }
        try self.checkMessage(start, start + body.content.count, inner, depth: depth + 1)
      default:
        break
      }
    }
    // Each slab holds twice as many as the one before, so that less than half of the last one is in vain.
    if memberCount > Scan.membersOnStack { self.memory += 4 * memberCount * Scan.memberSize }
  }

  // MARK: Pieces

  @inline(__always)
  private static func tag(
    _ at: inout Position,
    _ end: Position,
    _ descriptor: MessageDescriptorPointer
  ) throws(ConnectError) -> UInt32 {
    var tag = UInt32(at[0])
    at += 1
    if tag >= 0x80 {
      tag &= 0x7f
      var shift: UInt32 = 7
      while true {
        guard at < end, shift <= 28 else {
          throw .undecodable("\(descriptor.fullName): a cut or too long tag")
        }
        let byte = UInt32(at[0])
        at += 1
        if shift == 28, byte > 0x0f { throw .undecodable("\(descriptor.fullName): a tag out of range") }
        tag |= (byte & 0x7f) << shift
        if byte < 0x80 { break }
        shift += 7
      }
    }
    guard tag >> 3 != 0 else { throw .undecodable("\(descriptor.fullName): field number 0") }
    return tag
  }

  private struct Body {
    /// All bytes after the tag.
    var whole: Int
    /// Without a length in front.
    var content: UnsafeBufferPointer<UInt8>
  }

  @inline(__always)
  private static func body(
    _ at: inout Position,
    _ end: Position,
    _ wireType: UInt32,
    number: UInt32,
    _ descriptor: MessageDescriptorPointer
  ) throws(ConnectError) -> Body {
    let start = at
    switch wireType {
    case 0:
      while at < end, at[0] >= 0x80 { at += 1 }
      guard at < end, at - start < 10 else {
        throw .undecodable("\(descriptor.fullName): field \(number) is a cut or too long varint")
      }
      at += 1
      return Body(whole: at - start, content: UnsafeBufferPointer(start: start, count: at - start))
    case 1, 5:
      let count = wireType == 1 ? 8 : 4
      guard end - at >= count else { throw .undecodable("\(descriptor.fullName): field \(number) is cut") }
      at += count
      return Body(whole: count, content: UnsafeBufferPointer(start: start, count: count))
    case 2:
      var length = 0
      var shift = 0
      while true {
        guard at < end, shift <= 28 else {
          throw .undecodable("\(descriptor.fullName): field \(number) has a cut or too long length")
        }
        let byte = Int(at[0])
        at += 1
        length |= (byte & 0x7f) << shift
        if byte < 0x80 { break }
        shift += 7
      }
      guard length <= Int32.max, length <= end - at else {
        throw .undecodable("\(descriptor.fullName): field \(number) is cut: \(end - at) of \(length) bytes")
      }
      let content = UnsafeBufferPointer(start: at, count: length)
      at += length
      return Body(whole: at - start, content: content)
    case 3, 4:
      throw .undecodable(
        "\(descriptor.fullName): field \(number) is a group, which libprotobuf-c does not decode"
      )
    default:
      throw .undecodable(
        "\(descriptor.fullName): field \(number) has the wire type \(wireType), which does not exist"
      )
    }
  }

  /// The index of the field with this number; fields mostly come in their order.
  @inline(__always)
  private static func index(of number: UInt32, _ fields: Field, _ count: Int, from next: Int) -> Int? {
    if next < count, fields[next].id == number { return next }
    if next + 1 < count, fields[next + 1].id == number { return next + 1 }
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      let id = fields[middle].id
      if id == number { return middle }
      if id < number { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  private static func packedCount(
    _ bytes: UnsafeBufferPointer<UInt8>,
    _ kind: FieldKind,
    _ descriptor: MessageDescriptorPointer,
    _ field: Field
  ) throws(ConnectError) -> Int {
    if kind.wireType != 0 {
      guard bytes.count % kind.size == 0 else {
        throw .undecodable("\(descriptor.name(of: field)): \(bytes.count) bytes are no run of values")
      }
      return bytes.count / kind.size
    }
    // One that is too long makes libprotobuf-c refuse the message.
    guard bytes.last ?? 0 < 0x80 else { throw .undecodable("\(descriptor.name(of: field)): a cut varint") }
    guard let start = bytes.baseAddress else { return 0 }
    // Each varint has one byte whose highest bit is not set.
    var continuations = 0
    for index in 0..<bytes.count { continuations &+= Int(truncatingIfNeeded: start[index] >> 7) }
    return bytes.count - continuations
  }

  @inline(__always)
  private static func checkText(
    _ bytes: UnsafeBufferPointer<UInt8>,
    _ descriptor: MessageDescriptorPointer,
    _ field: Field
  ) throws(ConnectError) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    switch UTF8Check(start, count: bytes.count) {
    case .valid:
      return
    case .containsNUL:
      if field.pointee.isStringAsBytes { return }
      throw .undecodable("\(descriptor.name(of: field)): has a NUL, which a C string cannot hold")
    case .invalid:
      throw .undecodable("\(descriptor.name(of: field)): invalid UTF-8")
    }
  }
}

/// Indices of fields, of which few are over 63.
struct FieldSet {
  private var low: UInt64 = 0
  private var high: Set<Int>?

  /// Whether `index` was not there before.
  @inline(__always)
  mutating func insert(_ index: Int) -> Bool {
    if index >= 64 {
      var high = self.high.take() ?? []
      defer { self.high = high }
      return high.insert(index).inserted
    }
    let bit: UInt64 = 1 << UInt64(index)
    defer { self.low |= bit }
    return self.low & bit == 0
  }
}

extension ConnectError {
  /// Bytes of the peer that are no message.
  static func undecodable(_ message: String, _ code: Code = .internalError) -> ConnectError {
    ConnectError(code: code, message: "cannot decode: \(message)")
  }

  /// A message of the caller that cannot be sent.
  static func unencodable(_ message: String) -> ConnectError {
    ConnectError(code: .internalError, message: "cannot encode: \(message)")
  }

  /// A use of the module that does not fit the message.
  static func misuse(_ message: String) -> ConnectError {
    ConnectError(code: .invalidArgument, message: message)
  }
}
