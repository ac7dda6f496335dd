/// Reads the elements of DER one after the other (ITU-T X.690).
struct DERReader {
  struct Element {
    var tag: UInt8
    var content: ArraySlice<UInt8>
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    self.rest = bytes
  }

  /// The tag of the next element; nil at the end.
  var nextTag: UInt8? { self.rest.first }

  /// The next element; nil at the end, and if the bytes are no DER.
  mutating func next() -> Element? {
    var bytes = self.rest
    // No field of a certificate has a tag number that needs a second byte.
    guard let tag = bytes.popFirst(), tag & 0x1f != 0x1f, var length = bytes.popFirst().map(Int.init) else {
      return nil
    }
    if length >= 0x80 {
      let count = length & 0x7f
      // No certificate needs a length of four bytes, which might overflow an Int of 32 bits.
      guard (1...3).contains(count), bytes.count >= count else { return nil }
      length = bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
      bytes = bytes.dropFirst(count)
    }
    guard bytes.count >= length else { return nil }
    self.rest = bytes.dropFirst(length)
    return Element(tag: tag, content: bytes.prefix(length))
  }

  /// The content of the next element if it has this tag.
  mutating func next(_ tag: UInt8) -> ArraySlice<UInt8>? {
    guard self.nextTag == tag else { return nil }
    return self.next()?.content
  }

  /// A reader of the elements within the next one, if it has this tag.
  mutating func enter(_ tag: UInt8) -> DERReader? {
    self.next(tag).map { DERReader($0) }
  }
}

extension DERReader {
  static let boolean: UInt8 = 0x01
  static let integer: UInt8 = 0x02
  static let bitString: UInt8 = 0x03
  static let octetString: UInt8 = 0x04
  static let objectIdentifier: UInt8 = 0x06
  static let sequence: UInt8 = 0x30
  static let set: UInt8 = 0x31
  /// Of a `GeneralName` (RFC 5280, section 4.2.1.6).
  static let dnsName: UInt8 = 0x82
  static let ipAddress: UInt8 = 0x87
  static let uri: UInt8 = 0x86

  /// A constructed element with a context-specific tag.
  static func context(_ number: UInt8) -> UInt8 { 0xa0 | number }
}
