internal import Connect

/// A rule that is broken.
struct Finding: Error, Hashable {
  let rule: String
  let reason: String
  /// What lifts the rule; nil if nothing does.
  var allowance: ExplorationAllowance?
}

/// What has happened in a run: the story, its hash, what was covered, and which rules are broken.
///
/// Confined to the thread of the exploration.
final class RunLog {
  /// One line of the story.
  struct Line: Sendable {
    let time: Duration
    let call: Int?
    let text: String
  }

  /// Whether lines are kept. Most runs need none.
  let isTelling: Bool
  private(set) var lines: [Line] = []
  private(set) var trace = TraceHash()
  private(set) var coverage: [String: Int] = [:]
  private(set) var finding: Finding?
  private let now: () -> Duration
  private let watch: ExplorationWatch

  init(isTelling: Bool, _ watch: ExplorationWatch, now: @escaping () -> Duration) {
    self.isTelling = isTelling
    self.watch = watch
    self.now = now
  }

  /// Something has happened.
  ///
  /// - Parameters:
  ///   - kind: What it was: for the hash.
  ///   - call: Whose it was.
  ///   - text: The line of the story.
  func tell(_ kind: StaticString, _ call: Int?, _ text: @autoclosure () -> String) {
    // A plain sum of the bytes: hashes of the standard library differ between processes.
    kind.withUTF8Buffer { bytes in
      var word: UInt64 = UInt64(bytes.count)
      for byte in bytes { word = word &* 31 &+ UInt64(byte) }
      self.trace.add(word &* 8 &+ UInt64(call ?? 0))
    }
    self.trace.add(UInt64(truncatingIfNeeded: self.now().components.seconds))
    guard self.isTelling else { return }
    let line = Line(time: self.now(), call: call, text: text())
    self.lines.append(line)
    self.watch.note(line)
  }

  func cover(_ name: String) { self.coverage[name, default: 0] += 1 }

  /// A rule is broken. The first one counts.
  func find(_ finding: Finding) {
    if self.finding == nil { self.finding = finding }
  }

  /// - Parameter allowance: What lifts the rule; nil if nothing does.
  func find(_ rule: String, _ reason: String, liftedBy allowance: ExplorationAllowance? = nil) {
    self.find(Finding(rule: rule, reason: reason, allowance: allowance))
  }

  var story: String { Self.story(self.lines) }

  /// The text of a story, with aligned times.
  static func story(_ lines: [Line]) -> String {
    let times = lines.map { Self.text(of: $0.time) }
    let width = times.map(\.count).max() ?? 0
    return zip(times, lines).map { time, line in
      let gap = String(repeating: " ", count: width - time.count)
      return "\(gap)\(time)  \(line.text)"
    }.joined(separator: "\n")
  }

  /// In seconds, with milliseconds if there are any.
  private static func text(of time: Duration) -> String {
    let (seconds, attoseconds) = time.components
    let milliseconds = attoseconds / 1_000_000_000_000_000
    guard milliseconds > 0 else { return "\(seconds) s" }
    let digits = String(milliseconds + 1_000).dropFirst()
    return "\(seconds).\(digits) s"
  }
}
