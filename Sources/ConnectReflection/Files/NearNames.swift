internal import Connect

/// Suggests names that the caller may have meant.
enum NearNames {
  private static let most = 3
  /// Longer names are not compared, nor are more names than this.
  private static let longest = 256
  private static let mostCandidates = 100_000

  /// The candidates with almost the spelling of `name`, or with almost its last part; nearest first. Never `name` itself.
  static func near(_ name: String, in candidates: [String]) -> [String] {
    guard name.utf8.count <= self.longest else { return [] }
    let wanted = Array(name.lowercased().utf8)
    let lastWanted = self.lastPart(wanted)
    // A short name must not match every other short name.
    let limit = min(3, max(1, lastWanted.count / 3))
    var found: [(distance: Int, name: String)] = []
    for candidate in candidates.prefix(self.mostCandidates)
    where candidate.utf8.count <= self.longest && candidate != name {
      let spelling = Array(candidate.lowercased().utf8)
      var distance = self.distance(wanted[...], spelling[...], limit: limit)
      // The package is wrong or missing.
      if distance == nil {
        distance = self.distance(lastWanted, self.lastPart(spelling), limit: min(2, lastWanted.count / 4))
          .map { $0 + 4 }
      }
      if let distance { found.append((distance, candidate)) }
    }
    return found.sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }.prefix(self.most).map(\.name)
  }

  static func unknown(_ message: String, near names: [String]) -> ConnectError {
    guard let last = names.last else { return ConnectError(code: .notFound, message: message) }
    let first = names.dropLast().joined(separator: ", ")
    let list = first.isEmpty ? last : "\(first) or \(last)"
    return ConnectError(code: .notFound, message: "\(message); did you mean \(list)?")
  }

  private static func lastPart(_ name: [UInt8]) -> ArraySlice<UInt8> {
    // File names have dots, too.
    let separator = name.contains(UInt8(ascii: "/")) ? UInt8(ascii: "/") : UInt8(ascii: ".")
    return name.lastIndex(of: separator).map { name[($0 + 1)...] } ?? name[...]
  }

  /// The edit distance in bytes (insertions, removals, replacements); nil if it is more than `limit`.
  private static func distance(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>, limit: Int) -> Int? {
    guard abs(left.count - right.count) <= limit else { return nil }
    var row = Array(0...right.count)
    for (line, byte) in left.enumerated() {
      var diagonal = row[0]
      row[0] = line + 1
      for (column, other) in right.enumerated() {
        let replaced = diagonal + (byte == other ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
      }
      if row.allSatisfy({ $0 > limit }) { return nil }
    }
    return row[right.count] <= limit ? row[right.count] : nil
  }
}
