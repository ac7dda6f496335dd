internal import Foundation

/// Numbers as a line of small columns.
enum Plot {
  private static let columns: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

  /// - Parameters:
  ///   - values: Nil where there is nothing to show.
  ///   - largest: What the highest column stands for; nil for the largest value.
  static func line(_ values: [Double?], from smallest: Double = 0, to largest: Double? = nil) -> String {
    let top = largest ?? values.compactMap { $0 }.max() ?? 0
    return String(
      values.map { value in
        guard let value else { return " " }
        guard top > smallest else { return self.columns[0] }
        let share = min(max((value - smallest) / (top - smallest), 0), 1)
        return self.columns[min(Int(share * Double(self.columns.count)), self.columns.count - 1)]
      }
    )
  }

  /// With three significant digits, and a separator of thousands.
  static func number(_ value: Double) -> String {
    guard value.magnitude < 1e15 else { return String(format: "%.3g", value) }
    if value >= 100 || value == value.rounded() { return self.count(Int(value.rounded())) }
    return String(format: value >= 10 ? "%.1f" : "%.2f", value)
  }

  static func count(_ value: Int) -> String {
    var digits = Array(String(value.magnitude))
    var index = digits.count - 3
    while index > 0 {
      digits.insert(",", at: index)
      index -= 3
    }
    return (value < 0 ? "-" : "") + String(digits)
  }

  static func percent(_ part: Double) -> String {
    // A failure among a million is not 100 %.
    if part < 1, part > 0.9999 { return String(format: "%.4f %%", (part * 1e6).rounded(.down) / 1e4) }
    return String(format: "%.2f %%", part * 100)
  }
}
