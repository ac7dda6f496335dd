internal import Foundation

extension Double {
  /// The natural logarithm.
  var logarithm: Double { log(self) }

  /// The number whose power with this exponent the number is.
  func root(_ exponent: Int) -> Double { pow(self, 1 / Double(max(exponent, 1))) }
}
