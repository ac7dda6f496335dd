package import Connect

/// Gathers the fields of header blocks, one block after the other.
///
/// A server's blocks resemble each other. As long as the fields of a block are those of the previous block, nothing is
/// created. A block with the same fields is the same list: it costs a comparison, but no allocation.
package struct HTTPFieldBlock {
  /// Lists of more bytes than these are not kept for comparison.
  static let maximumKeptSize = 4 << 10

  private var previous = Headers()
  /// How many of the previous block's fields are this one's, too.
  private var matchCount = 0
  /// This block's fields, once they differ.
  private var fields: Headers?
  /// As in RFC 9113, section 6.5.2.
  package private(set) var size = 0

  package init() {}

  package mutating func begin() {
    self.matchCount = 0
    self.fields = nil
    self.size = 0
  }

  /// Counts a field that is not kept.
  package mutating func count(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
    self.size += name.count + value.count + 32
  }

  /// Adds a field, without the white space around its value.
  ///
  /// - Parameter limit: A block of a larger size is not kept.
  package mutating func add(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, limit: Int) {
    self.count(name: name, value: value)
    let value = FieldSpace.trim(value)
    guard self.size <= limit else {
      self.fields = Headers()
      return
    }
    if self.fields == nil {
      if self.matchCount < self.previous.count,
        self.previous.fields[self.matchCount].equals(name: name, value: value)
      {
        self.matchCount += 1
        return
      }
      var fields = Headers()
      fields.reserveCapacity(max(8, self.previous.count))
      fields.append(contentsOf: self.previous.prefix(self.matchCount))
      self.fields = fields
    }
    // libnghttp2 and libnghttp3 refuse names in upper case (RFC 9113, section 8.2.1; RFC 9114, section 4.2).
    self.fields?.append(
      Headers.Field(
        lowercasedName: String(decoding: name, as: UTF8.self),
        value: String(decoding: value, as: UTF8.self)
      )
    )
  }

  /// The block's fields, which the next block is compared with.
  package mutating func finish() -> Headers {
    let size = self.size
    let result: Headers
    if let fields = self.fields {
      result = fields
    } else if self.matchCount == self.previous.count {
      result = self.previous
    } else {
      result = Headers(self.previous.prefix(self.matchCount))
    }
    self.begin()
    self.previous = size <= Self.maximumKeptSize ? result : Headers()
    return result
  }
}

extension Headers.Field {
  fileprivate func equals(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) -> Bool {
    self.value.equals(value) && self.name.equals(name)
  }
}

extension String {
  fileprivate func equals(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var text = self
    return text.withUTF8 { utf8 in
      guard utf8.count == bytes.count else { return false }
      // All bytes are looked at, which is what lets the compiler take many at a time.
      var difference: UInt8 = 0
      for index in utf8.indices { difference |= utf8[index] ^ bytes[index] }
      return difference == 0
    }
  }
}
