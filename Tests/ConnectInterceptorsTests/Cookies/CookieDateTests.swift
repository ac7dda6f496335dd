import XCTest

@testable import ConnectInterceptors

/// Dates of cookies: RFC 6265, section 5.1.1.
final class CookieDateTests: XCTestCase {
  /// 1994-11-06 08:49:37 UTC.
  private static let example: Int64 = 784_111_777

  func testManyForms() {
    let forms = [
      "Sun, 06 Nov 1994 08:49:37 GMT",
      "Sunday, 06-Nov-94 08:49:37 GMT",
      "Sun Nov  6 08:49:37 1994",
      "06 Nov 1994 08:49:37",
      "6 nov 94 8:49:37",
      "Sun,06Nov1994 08:49:37",
      "1994 Nov 06 08:49:37",
      "08:49:37 1994 NOVEMBER 6",
      "Sun; 06/Nov/1994 [08:49:37]",
      "06 Nov 1994 08:49:37.123 +0200",
      "06 Nov 1994 08:49:37abc",
      "06th Nov 1994AD 08:49:37",
      "06 November 1994 08:49:37 07 Dec 1995 10:00:00",
      "-06-Nov-1994--08:49:37-",
    ]
    for form in forms where form != "Sun,06Nov1994 08:49:37" {
      XCTAssertEqual(CookieDate.seconds(form.utf8), Self.example, form)
    }
    // One token, which is a day and nothing else.
    XCTAssertNil(CookieDate.seconds("Sun,06Nov1994 08:49:37".utf8))
  }

  func testYears() {
    func start(_ year: String) -> Int64? { CookieDate.seconds("1 Jan \(year) 0:0:0".utf8) }
    XCTAssertEqual(start("1970"), 0)
    XCTAssertEqual(start("70"), 0)
    XCTAssertEqual(start("99"), 915_148_800)
    XCTAssertEqual(start("00"), 946_684_800)
    XCTAssertEqual(start("69"), 3_124_224_000)
    XCTAssertEqual(start("100"), nil)
    XCTAssertEqual(start("1601"), -11_644_473_600)
    XCTAssertEqual(start("1600"), nil)
    XCTAssertEqual(start("9999"), 253_370_764_800)
    XCTAssertEqual(start("10000"), nil)
    XCTAssertEqual(start("7"), nil)
  }

  func testDaysOfMonths() {
    for (text, isDate) in [
      ("29 Feb 2000", true), ("29 Feb 1900", false), ("29 Feb 2024", true), ("29 Feb 2023", false),
      ("30 Feb 2024", false), ("31 Apr 2024", false), ("31 Dec 2024", true), ("0 Jan 2024", false),
      ("32 Jan 2024", false), ("00 Jan 2024", false),
    ] {
      XCTAssertEqual(CookieDate.seconds("\(text) 00:00:00".utf8) != nil, isDate, text)
    }
  }

  func testTimes() {
    for (text, isTime) in [
      ("23:59:59", true), ("24:00:00", false), ("00:60:00", false), ("00:00:60", false), ("0:0:0", true),
      ("000:00:00", false), ("00:00", false), ("00:00:", false), ("aa:00:00", false), ("00:00:000", false),
      ("1:2:3:4", true),
    ] {
      XCTAssertEqual(CookieDate.seconds("1 Jan 2024 \(text)".utf8) != nil, isTime, text)
    }
  }

  func testNoDates() {
    for text in [
      "", "GMT", "1 2 3", "Nov 1994 08:49:37", "06 Nov 08:49:37", "06 1994 08:49:37", "06 Nox 1994 08:49:37",
      "\u{ff}",
    ] {
      XCTAssertNil(CookieDate.seconds(text.utf8), text)
    }
    XCTAssertNil(CookieDate.seconds([UInt8](repeating: UInt8(ascii: "9"), count: 100_000)))
  }

  /// Each day of 800 years, against a count of days.
  func testEachDay() {
    var days: Int64 = -134_774
    for year in Int64(1601)...2400 {
      for month in Int64(1)...12 {
        for day in 1...CivilDate.dayCount(year: year, month: month) {
          XCTAssertEqual(CivilDate.days(year: year, month: month, day: day), days)
          days += 1
        }
      }
    }
  }
}
