/// The value of `grpc-timeout`: at most eight digits and a unit.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>
enum GRPCTimeout {
  private static let maximumValue: Int128 = 99_999_999
  private static let attosecondsPerNanosecond: Int128 = 1_000_000_000
  /// The units and what each is of the one before, finest first.
  private static let units: [(symbol: Character, factor: Int128)] = [
    ("n", 1), ("u", 1000), ("m", 1000), ("S", 1000), ("M", 60), ("H", 60),
  ]

  /// `timeout` in the finest unit that does not take more digits, rounded up so that the server never gives up
  /// before the client; at least 1 ns and at most what eight digits of hours can say.
  static func encode(_ timeout: Duration) -> String {
    var value = max(1, self.divide(timeout.attoseconds, by: self.attosecondsPerNanosecond))
    var symbol: Character = "n"
    for unit in self.units {
      value = self.divide(value, by: unit.factor)
      symbol = unit.symbol
      if value <= self.maximumValue { break }
    }
    return "\(min(value, self.maximumValue))\(symbol)"
  }

  /// Rounded up.
  private static func divide(_ dividend: Int128, by divisor: Int128) -> Int128 {
    let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
    return remainder > 0 ? quotient + 1 : quotient
  }
}
