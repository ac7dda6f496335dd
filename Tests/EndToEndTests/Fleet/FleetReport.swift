/// Prints what a test has counted, as a line of one table over all of them.
enum FleetReport {
  static func line(_ scenario: String, calls: Int, failed: Int, _ note: String = "") {
    let end = note.isEmpty ? "" : " | \(note)"
    print("FLEET | \(scenario) | \(Self.grouped(calls)) calls | \(Self.grouped(failed)) failed\(end)")
  }

  static func line(_ scenario: String, _ tally: FleetTally, _ note: String = "") {
    self.line(scenario, calls: tally.callCount, failed: tally.failures.count, note)
  }

  /// With a comma before each three digits.
  private static func grouped(_ number: Int) -> String {
    var text = ""
    for (index, digit) in String(number).reversed().enumerated() {
      if index > 0, index.isMultiple(of: 3) { text.append(",") }
      text.append(digit)
    }
    return String(text.reversed())
  }
}
