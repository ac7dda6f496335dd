/// Splits bytes into lines. A line that is too long is not kept.
struct LineSplitter {
  enum Line {
    case text([UInt8], number: Int)
    case tooLong(number: Int)
  }

  /// 1 MiB.
  static let longestLine = 1 << 20

  private var rest: [UInt8] = []
  private var isSkipping = false
  private var number = 0

  mutating func read(_ bytes: [UInt8], _ body: (Line) -> Void) {
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      self.append(bytes[start..<end])
      self.end(body)
      start = end + 1
    }
    self.append(bytes[start...])
  }

  mutating func finish(_ body: (Line) -> Void) {
    if !self.rest.isEmpty || self.isSkipping { self.end(body) }
  }

  private mutating func append(_ bytes: ArraySlice<UInt8>) {
    guard !self.isSkipping else { return }
    if self.rest.count + bytes.count > Self.longestLine {
      (self.rest, self.isSkipping) = ([], true)
    } else {
      self.rest += bytes
    }
  }

  private mutating func end(_ body: (Line) -> Void) {
    self.number += 1
    if self.isSkipping {
      body(.tooLong(number: self.number))
    } else if self.rest.contains(where: { $0 > 0x20 }) {
      body(.text(self.rest, number: self.number))
    }
    (self.rest, self.isSkipping) = ([], false)
  }
}
