extension Duration {
  /// The longest time that the library counts with: 100 years of 365 days.
  ///
  /// Such times can be added, and fit into the 64-bit nanoseconds of event loops and clocks, where `Duration`'s own
  /// arithmetic would trap.
  package static var longest: Duration { .seconds(100 * 365 * 24 * 60 * 60) }

  /// The duration if it is between minus 100 and 100 years, else the nearer of the two.
  ///
  /// Durations from users, peers and clocks are clamped before any arithmetic.
  package var clamped: Duration {
    // As integers, which are compared inline.
    let limit = Self.longest.attoseconds
    if self.attoseconds > limit { return .longest }
    if self.attoseconds < -limit { return .zero - .longest }
    return self
  }

  /// The clamped duration multiplied by `factor`, clamped. A `factor` that is not a number counts as zero.
  package func scaled(by factor: Double) -> Duration {
    let base = self.clamped
    guard !factor.isNaN, base != .zero else { return .zero }
    let limit = Duration.longest / base
    // Where the product would overflow.
    guard abs(factor) < abs(limit) else {
      return (factor < 0) == (base < .zero) ? .longest : .zero - .longest
    }
    return base * factor
  }
}
