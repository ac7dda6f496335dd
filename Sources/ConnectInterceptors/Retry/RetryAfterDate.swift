/// The date of a `Retry-After` header, in one of the three forms that RFC 9110, section 5.6.7, asks recipients to read.
enum RetryAfterDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Seconds since 1970; nil if `text` is no date.
  static func seconds(_ text: String) -> Int64? {
    let parts = text.split(separator: " ")
    switch parts.count {
    case 6 where parts[0].hasSuffix(",") && parts[5] == "GMT":  // Sun, 06 Nov 1994 08:49:37 GMT
      return self.seconds(year: self.number(parts[3]), month: parts[2], day: parts[1], time: parts[4])
    case 4 where parts[0].hasSuffix(",") && parts[3] == "GMT":  // Sunday, 06-Nov-94 08:49:37 GMT
      let date = parts[1].split(separator: "-")
      guard date.count == 3, let year = self.number(date[2]), year < 100 else { return nil }
      return self.seconds(
        year: year + (year < 70 ? 2000 : 1900),
        month: date[1],
        day: date[0],
        time: parts[2]
      )
    case 5:  // Sun Nov  6 08:49:37 1994
      return self.seconds(year: self.number(parts[4]), month: parts[1], day: parts[2], time: parts[3])
    default:
      return nil
    }
  }

  private static func seconds(year: Int64?, month: Substring, day: Substring, time: Substring) -> Int64? {
    let clock = time.split(separator: ":").map(self.number)
    guard let year, (1970...9999).contains(year), let day = self.number(day), (1...31).contains(day),
      let month = self.months.firstIndex(where: { $0 == month }), clock.count == 3,
      let hour = clock[0], hour < 24, let minute = clock[1], minute < 60,
      let second = clock[2], second <= 60
    else { return nil }
    let days = CivilDate.days(year: year, month: Int64(month) + 1, day: day)
    return days * 86_400 + hour * 3_600 + minute * 60 + second
  }

  private static func number(_ digits: Substring) -> Int64? {
    guard digits.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else { return nil }
    return Int64(digits)
  }
}
