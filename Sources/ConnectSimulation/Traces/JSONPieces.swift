/// Finds parts of a JSON text that comes piece by piece: the elements of some lists, and the values of some keys. It keeps one of them
/// at a time, however long the text is. Documents may follow each other, one a line.
struct JSONPieces {
  enum Found {
    /// A part, with the key of the list or the value.
    case part(key: String, text: [UInt8], line: Int)
    case problem(String, line: Int)
  }

  private struct Container {
    var isList: Bool
    var key: String
  }

  /// 16 MiB: recorded calls may have large bodies.
  private static let longestPart = 16 << 20
  private static let deepest = 64
  private static let longestKey = 256

  /// Lists whose elements that are objects are found.
  private let lists: Set<String>
  /// Keys whose values that are objects are found.
  private let keys: Set<String>
  private var containers: [Container] = []
  private var line = 1
  private var isInString = false
  private var isEscaped = false
  /// The bytes of a key; nil outside of keys.
  private var keyBytes: [UInt8]?
  private var mayBeKey = false
  private var key = ""
  /// The part that is being read.
  private var part: (key: String, bytes: [UInt8], depth: Int, line: Int, isTooLong: Bool)?
  /// Whether documents end with their lines, as in logs.
  private var endsWithLines = false
  private var isAtLineStart = true
  /// Whether all is skipped to the next line.
  private var isSkipping = false

  init(elementsOf lists: Set<String>, valuesOf keys: Set<String> = []) {
    self.lists = lists
    self.keys = keys
  }

  mutating func read(_ bytes: [UInt8], _ found: (Found) -> Void) {
    var index = bytes.startIndex
    while index < bytes.endIndex {
      // Most bytes are within strings, where they mean nothing.
      if self.isInString, !self.isEscaped, self.keyBytes == nil, !self.isSkipping {
        let start = index
        while index < bytes.endIndex, !Self.isSpecialInString(bytes[index]) { index += 1 }
        self.keep(bytes[start..<index])
        guard index < bytes.endIndex else { return }
      }
      self.read(bytes[index], found)
      index += 1
    }
  }

  private static func isSpecialInString(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "\n")
  }

  mutating func finish(_ found: (Found) -> Void) {
    if !self.containers.isEmpty || self.isInString { self.fail("the text ends within a value", found) }
  }

  private mutating func read(_ byte: UInt8, _ found: (Found) -> Void) {
    if byte == UInt8(ascii: "\n") {
      if self.isInString { self.fail("a string does not end in its line", found) }
      if self.containers.isEmpty { self.endsWithLines = true }
      self.line += 1
      (self.isAtLineStart, self.isSkipping) = (true, false)
      return
    }
    let isAtLineStart = self.isAtLineStart
    self.isAtLineStart = false
    guard !self.isSkipping else { return }
    if isAtLineStart, self.endsWithLines, byte == UInt8(ascii: "{"), !self.containers.isEmpty {
      self.fail("the value of the line before does not end", found)
      self.isSkipping = false
    }
    if self.isInString { return self.readString(byte) }
    switch byte {
    case UInt8(ascii: "\""):
      self.isInString = true
      // Within a part, keys are left to who parses it.
      if self.mayBeKey, self.part == nil { self.keyBytes = [] }
      self.keep(byte)
    case UInt8(ascii: "{"), UInt8(ascii: "["): self.open(isList: byte == UInt8(ascii: "["), byte, found)
    case UInt8(ascii: "}"), UInt8(ascii: "]"): self.close(isList: byte == UInt8(ascii: "]"), byte, found)
    case UInt8(ascii: ","):
      self.mayBeKey = self.containers.last?.isList == false
      self.keep(byte)
    case UInt8(ascii: ":"):
      self.mayBeKey = false
      self.keep(byte)
    default:
      if self.containers.isEmpty, byte > 0x20 {
        self.fail("no JSON object", found)
      } else {
        self.keep(byte)
      }
    }
  }

  private mutating func readString(_ byte: UInt8) {
    self.keep(byte)
    if self.isEscaped {
      self.isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      self.isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      self.isInString = false
      if let bytes = self.keyBytes {
        (self.key, self.keyBytes, self.mayBeKey) = (String(decoding: bytes, as: UTF8.self), nil, false)
      }
      return
    }
    if let count = self.keyBytes?.count, count < Self.longestKey { self.keyBytes?.append(byte) }
  }

  private mutating func open(isList: Bool, _ byte: UInt8, _ found: (Found) -> Void) {
    guard self.containers.count < Self.deepest else {
      return self.fail("values are nested deeper than \(Self.deepest) levels", found)
    }
    let outer = self.containers.last
    let key = outer?.isList == true ? "" : self.key
    if self.part == nil, !isList {
      if let outer, outer.isList, self.lists.contains(outer.key) {
        self.part = (outer.key, [], self.containers.count, self.line, false)
      } else if outer?.isList == false, self.keys.contains(key) {
        self.part = (key, [], self.containers.count, self.line, false)
      }
    }
    self.keep(byte)
    self.containers.append(Container(isList: isList, key: key))
    (self.key, self.mayBeKey) = ("", !isList)
  }

  private mutating func close(isList: Bool, _ byte: UInt8, _ found: (Found) -> Void) {
    guard self.containers.popLast()?.isList == isList else {
      return self.fail("a bracket does not fit", found)
    }
    self.mayBeKey = false
    self.keep(byte)
    guard let part = self.part, part.depth == self.containers.count else { return }
    self.part = nil
    if part.isTooLong {
      found(.problem("a value is longer than \(Self.longestPart >> 20) MiB", line: part.line))
    } else {
      found(.part(key: part.key, text: part.bytes, line: part.line))
    }
  }

  private mutating func keep(_ byte: UInt8) { self.keep(CollectionOfOne(byte)) }

  private mutating func keep(_ bytes: some Collection<UInt8>) {
    guard let isTooLong = self.part?.isTooLong, !isTooLong else { return }
    if (self.part?.bytes.count ?? 0) + bytes.count <= Self.longestPart {
      self.part?.bytes += bytes
    } else {
      self.part?.isTooLong = true
      self.part?.bytes = []
    }
  }

  /// Reading goes on with the next line.
  private mutating func fail(_ problem: String, _ found: (Found) -> Void) {
    found(.problem(problem, line: self.line))
    self.containers = []
    (self.part, self.keyBytes, self.key) = (nil, nil, "")
    (self.isInString, self.isEscaped, self.mayBeKey) = (false, false, false)
    (self.isSkipping, self.endsWithLines) = (true, true)
  }
}
