/// The difference between two texts, line by line.
enum LineDiff {
  /// Longer texts are compared from the first line that differs, without a search for equal lines after it.
  private static let maximumLines = 400

  /// Lines that both have begin with two spaces, those that were expected and are missing with `-`, those that were
  /// not expected with `+`.
  static func describe(expected: String, actual: String) -> String {
    let expected = expected.split(separator: "\n", omittingEmptySubsequences: false)
    let actual = actual.split(separator: "\n", omittingEmptySubsequences: false)
    guard max(expected.count, actual.count) <= self.maximumLines else {
      let common = zip(expected, actual).prefix { $0 == $1 }.count
      let removed = expected.dropFirst(common).prefix(self.maximumLines).map { "- \($0)" }
      let added = actual.dropFirst(common).prefix(self.maximumLines).map { "+ \($0)" }
      return (["  (\(common) lines are the same)"] + removed + added).joined(separator: "\n")
    }
    let difference = actual.difference(from: expected)
    var removed = Set<Int>()
    var inserted = Set<Int>()
    for change in difference {
      switch change {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): inserted.insert(offset)
      }
    }
    var lines: [String] = []
    var (left, right) = (0, 0)
    while left < expected.count || right < actual.count {
      if removed.contains(left) {
        lines.append("- \(expected[left])")
        left += 1
      } else if inserted.contains(right) {
        lines.append("+ \(actual[right])")
        right += 1
      } else {
        lines.append("  \(actual[right])")
        left += 1
        right += 1
      }
    }
    return lines.joined(separator: "\n")
  }
}
