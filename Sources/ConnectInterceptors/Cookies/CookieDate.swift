/// The date of a cookie's `Expires`, in any of the many forms that servers send: RFC 6265, section 5.1.1.
enum CookieDate {
  private static let months = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]

  /// Seconds since 1970-01-01 00:00 UTC, perhaps less than zero; nil if `text` is no date.
  static func seconds(_ text: some Collection<UInt8>) -> Int64? {
    var time: (hour: Int64, minute: Int64, second: Int64)?
    var day: Int64?
    var month: Int64?
    var year: Int64?
    // Each part is the first token that looks like it, in this order.
    for token in text.split(whereSeparator: self.isDelimiter) {
      if time == nil, let found = self.time(token) {
        time = found
      } else if day == nil, let found = self.number(token, digits: 1...2) {
        day = found
      } else if month == nil, let found = self.month(token) {
        month = found
      } else if year == nil, let found = self.number(token, digits: 2...4) {
        year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
      }
    }
    guard let time, let day, let month, let year, year >= 1601, time.hour <= 23, time.minute <= 59,
      time.second <= 59,
      (1...CivilDate.dayCount(year: year, month: month)).contains(day)
    else { return nil }
    return CivilDate.days(year: year, month: month, day: day) * 86_400 + time.hour * 3_600 + time
      .minute * 60
      + time.second
  }

  private static func isDelimiter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x20...0x2f, 0x3b...0x40, 0x5b...0x60, 0x7b...0x7e: true
    default: false
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// A number with so many digits at the beginning of a token, and no digit behind them.
  private static func number(_ token: some Collection<UInt8>, digits: ClosedRange<Int>) -> Int64? {
    let number = token.prefix(while: self.isDigit)
    guard digits.contains(number.count) else { return nil }
    return number.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
  }

  /// `8:49:37`, perhaps with something behind it.
  private static func time(_ token: some Collection<UInt8>) -> (
    hour: Int64, minute: Int64, second: Int64
  )? {
    let parts = token.split(
      separator: UInt8(ascii: ":"),
      maxSplits: 2,
      omittingEmptySubsequences: false
    )
    guard parts.count == 3, parts[0].allSatisfy(self.isDigit), parts[1].allSatisfy(self.isDigit),
      let hour = self.number(parts[0], digits: 1...2),
      let minute = self.number(parts[1], digits: 1...2),
      let second = self.number(parts[2], digits: 1...2)
    else { return nil }
    return (hour, minute, second)
  }

  /// From 1; whatever follows the first three letters.
  private static func month(_ token: some Collection<UInt8>) -> Int64? {
    let name = token.prefix(3).map { $0 | 0x20 }
    return self.months.firstIndex { $0.utf8.elementsEqual(name) }.map { Int64($0) + 1 }
  }
}
