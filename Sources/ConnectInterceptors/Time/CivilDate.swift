/// Days of the Gregorian calendar.
enum CivilDate {
  /// Days since 1970-01-01, perhaps less than zero.
  ///
  /// - Parameters:
  ///   - year: From 0 on.
  ///   - month: 1 to 12.
  ///   - day: Counted from 1.
  static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    // Years that begin in March end with the leap day.
    let march = (month + 9) % 12
    let civilYear = march < 10 ? year : year - 1
    let dayOfYear = (153 * march + 2) / 5 + day - 1
    let leapDays = civilYear / 4 - civilYear / 100 + civilYear / 400
    return civilYear * 365 + leapDays + dayOfYear - 719_468
  }

  static func dayCount(year: Int64, month: Int64) -> Int64 {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }
}
