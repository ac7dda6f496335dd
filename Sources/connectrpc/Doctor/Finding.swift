/// One line of the doctor's output.
struct Finding {
  enum Verdict: String {
    case works = "ok"
    /// Not there, perhaps on purpose.
    case absent = "--"
    case broken = "NO"
  }

  var subject: String
  var verdict: Verdict
  var text: String
  /// What to do about it.
  var advice: String?
  /// Whether this prevents calls with the given options.
  var isFatal: Bool

  /// - Parameter isFatal: By default true if the verdict is `broken`.
  init(_ subject: String, _ verdict: Verdict, _ text: String, advice: String? = nil, isFatal: Bool? = nil) {
    self.subject = subject
    self.verdict = verdict
    self.text = text
    self.advice = advice
    self.isFatal = isFatal ?? (verdict == .broken)
  }

  var lines: String {
    let mark =
      switch self.verdict {
      case .works: self.verdict.rawValue
      case .absent: Console.dim(self.verdict.rawValue)
      case .broken: Console.bad(self.verdict.rawValue)
      }
    let advice = self.advice.map { "\n\("".padded(17))\($0)" } ?? ""
    return "\(mark)  \(self.subject.padded(12)) \(Console.line(self.text))\(advice)"
  }
}
