internal import ConnectChannels

/// Which regular expressions are accepted: those of RE2, as in gRPC and Envoy, as far as they are small.
enum RegexSyntax {
  /// Longer or deeper ones are for no good use. The parser is recursive.
  private static let maximumLength = 4096
  private static let maximumDepth = 50

  /// Why it is refused; nil if it is valid.
  static func problem(of pattern: String) -> String? {
    guard pattern.utf8.count <= self.maximumLength else {
      return "the regular expression is longer than \(self.maximumLength) bytes"
    }
    let openings = pattern.utf8.count { $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: "[") }
    guard openings <= self.maximumDepth else {
      return "the regular expression has more than \(self.maximumDepth) groups"
    }
    var scan = RegexScan(pattern)
    if let problem = scan.problem() { return problem }
    do throws(RegularExpression.PatternError) {
      _ = try RegularExpression(pattern)
      return nil
    } catch {
      return error.reason
    }
  }
}

/// Finds what RE2 does not have, or reads otherwise than the engine here: many repetitions within repetitions, which could take
/// for ever, what looks around or back, and operators in classes.
private struct RegexScan {
  /// As in RE2: of a repetition with all those around it.
  private static let maximumRepetitions = 1000

  private var rest: Substring.UTF8View
  /// For each open group, and the whole: the most repetitions within it.
  private var groups = [1]
  /// The repetitions of what was read last.
  private var last = 1

  init(_ pattern: String) { self.rest = Substring(pattern).utf8 }

  mutating func problem() -> String? {
    while let byte = self.rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\\"):
        guard let escaped = self.rest.popFirst() else { return nil }
        if escaped == UInt8(ascii: "Q") { self.skipQuotation() }
        if UInt8(ascii: "1")...UInt8(ascii: "9") ~= escaped || escaped == UInt8(ascii: "k")
          || escaped == UInt8(ascii: "g")
        {
          return "the regular expression refers back to a group, which RE2 cannot do"
        }
        self.last = 1
      case UInt8(ascii: "["):
        if let problem = self.classProblem() { return problem }
        self.last = 1
      case UInt8(ascii: "("):
        if ["?=", "?!", "?<=", "?<!", "?>"].contains(where: { self.rest.starts(with: $0.utf8) }) {
          return "the regular expression looks around, which RE2 cannot do"
        }
        self.groups.append(1)
        self.last = 1
      case UInt8(ascii: ")"):
        if self.groups.count > 1 { self.note(self.groups.removeLast()) }
      case UInt8(ascii: "{"):
        guard let count = self.repetitions() else {
          self.last = 1
          continue
        }
        guard count <= Self.maximumRepetitions, count * self.last <= Self.maximumRepetitions else {
          return "the regular expression has more than \(Self.maximumRepetitions) repetitions"
        }
        self.note(max(count, 1) * self.last)
      case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"): break
      default: self.last = 1
      }
    }
    return nil
  }

  private mutating func note(_ count: Int) {
    self.last = count
    self.groups[self.groups.count - 1] = max(self.groups[self.groups.count - 1], count)
  }

  /// Reads up to the end of a class. What the engine here reads as operators between classes are characters for RE2.
  private mutating func classProblem() -> String? {
    while let byte = self.rest.popFirst() {
      switch byte {
      case UInt8(ascii: "]"): return nil
      case UInt8(ascii: "\\"): _ = self.rest.popFirst()
      case UInt8(ascii: "["):
        guard self.rest.first == UInt8(ascii: ":"), let end = self.rest.firstIndex(of: UInt8(ascii: "]"))
        else {
          return "the regular expression has an unescaped [ in a class; write \\["
        }
        self.rest = self.rest[self.rest.index(after: end)...]
      case UInt8(ascii: "&"), UInt8(ascii: "-"), UInt8(ascii: "~"):
        guard self.rest.first == byte else { continue }
        let text = String(decoding: [byte, byte], as: UTF8.self)
        return
          "the regular expression has \(text) in a class, which not all engines read alike; write \\ before each"
      default: break
      }
    }
    return nil
  }

  private mutating func skipQuotation() {
    while !self.rest.isEmpty, !self.rest.starts(with: "\\E".utf8) { self.rest.removeFirst() }
    self.rest = self.rest.dropFirst(2)
  }

  /// Reads `3}`, `3,}` or `3,5}`, and gives the larger number; nil, and nothing is read, if there is something else.
  private mutating func repetitions() -> Int? {
    guard let end = self.rest.firstIndex(of: UInt8(ascii: "}")) else { return nil }
    let parts = self.rest[..<end].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
    var count = 0
    guard parts.count <= 2 else { return nil }
    for (index, part) in parts.enumerated() where !(index == 1 && part.isEmpty) {
      guard !part.isEmpty, part.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
        return nil
      }
      // A number that is too long for the type is too many.
      count = max(count, Int(String(Substring(part))) ?? .max)
    }
    self.rest = self.rest[self.rest.index(after: end)...]
    return count
  }
}
