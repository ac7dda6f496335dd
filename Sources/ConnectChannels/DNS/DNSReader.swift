/// Reads the parts of a DNS message one after the other (RFC 1035, section 4.1).
///
/// Each function returns nil where the message is too short or breaks the format. Then the position is
/// undefined, and the message has to be dropped.
struct DNSReader {
  private let message: [UInt8]
  private(set) var position = 0

  init(_ message: [UInt8]) {
    self.message = message
  }

  var remaining: Int { self.message.count - self.position }

  mutating func byte() -> UInt8? {
    guard self.remaining > 0 else { return nil }
    defer { self.position += 1 }
    return self.message[self.position]
  }

  mutating func uint16() -> UInt16? {
    guard let bytes = self.bytes(2) else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt16($1) }
  }

  mutating func uint32() -> UInt32? {
    guard let bytes = self.bytes(4) else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }

  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard count >= 0, self.remaining >= count else { return nil }
    defer { self.position += count }
    return self.message[self.position..<self.position + count]
  }

  /// A name, compressed or not.
  ///
  /// Each pointer has to lead to before the part that it ends. Therefore a chain of pointers has an end, and
  /// the name's length bounds the work.
  mutating func name() -> DNSName? {
    var labels: [[UInt8]] = []
    var length = 1
    var cursor = self.position
    var partStart = self.position
    var end: Int?
    while cursor < self.message.count {
      let byte = self.message[cursor]
      switch byte & 0xc0 {
      case 0x00 where byte == 0:
        self.position = end ?? cursor + 1
        return DNSName(labels: labels)
      case 0x00:
        let next = cursor + 1 + Int(byte)
        length += 1 + Int(byte)
        guard next <= self.message.count, length <= DNSName.maximumLength else { return nil }
        labels.append(Array(self.message[cursor + 1..<next]))
        cursor = next
      case 0xc0:
        guard cursor + 1 < self.message.count else { return nil }
        let target = Int(byte & 0x3f) << 8 | Int(self.message[cursor + 1])
        guard target < partStart else { return nil }
        if end == nil { end = cursor + 2 }
        partStart = target
        cursor = target
      default:
        // 01 and 10 are label types that nobody uses (RFC 6891, section 5).
        return nil
      }
    }
    return nil
  }
}
