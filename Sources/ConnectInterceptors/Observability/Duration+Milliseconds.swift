internal import Connect

extension Duration {
  /// In milliseconds, as text with three decimals. Less than zero is shown as zero, more than 100 years as that.
  var milliseconds: String {
    let (seconds, attoseconds) = self.clamped.components
    let microseconds = max(0, seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
    let fraction = String(microseconds % 1000)
    return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}
