/// Dates as HTTP writes them, RFC 9110, section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
  private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = [
    "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
  ]

  /// - Parameter seconds: Since 1970. Clamped to the years 1970 to 9999.
  static func text(_ seconds: Int64) -> String {
    let seconds = min(max(seconds, 0), 253_402_300_799)
    let (day, second) = (seconds / 86_400, seconds % 86_400)
    // Years that begin in March end with the leap day. 400 of them, an era, have 146,097 days.
    let fromMarch = day + 719_468
    let (era, dayOfEra) = (fromMarch / 146_097, fromMarch % 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * month + 2) / 5 + 1
    let year = era * 400 + yearOfEra + (month >= 10 ? 1 : 0)
    let clock = [second / 3600, second / 60 % 60, second % 60].map(self.twoDigits).joined(separator: ":")
    return
      "\(self.days[Int(day % 7)]), \(self.twoDigits(dayOfMonth)) \(self.months[Int(month)]) \(year) \(clock) GMT"
  }

  private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
