import ArgumentParser

/// A duration on the command line: `500ms`, `3s`, `1.5m`, `2h`; a number alone means seconds.
struct TimeSpan: ExpressibleByArgument {
  var duration: Duration

  private static let units: [(suffix: String, seconds: Double)] = [
    ("ms", 0.001), ("us", 0.000_001), ("s", 1), ("m", 60), ("h", 3600),
  ]

  init?(argument: String) {
    let argument = argument.withoutBlanks
    let unit = Self.units.first { argument.hasSuffix($0.suffix) }
    let number = argument.dropLast(unit?.suffix.count ?? 0)
    guard let value = Double(number) else { return nil }
    let seconds = value * (unit?.seconds ?? 1)
    // Not-a-number is in no range.
    guard (1e-9...1e9).contains(seconds) else { return nil }
    self.duration = .nanoseconds(Int64(seconds * 1e9))
  }
}
