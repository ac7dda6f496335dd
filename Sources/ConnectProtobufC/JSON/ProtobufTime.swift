/// The content of a `google.protobuf.Timestamp` or `google.protobuf.Duration`, and its text in JSON.
struct ProtobufTime: Equatable, CustomStringConvertible {
  var seconds: Int64
  var nanoseconds: Int32

  private static let secondsPerDay: Int64 = 86_400

  init(seconds: Int64, nanoseconds: Int32) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// - Parameter schema: The schema of one of the two types.
  init(_ message: MessagePointer, of schema: MessageSchema) {
    self.seconds = message.place(of: schema.fields[0]).load(as: Int64.self)
    self.nanoseconds = message.place(of: schema.fields[1]).load(as: Int32.self)
  }

  func store(in message: MessagePointer, of schema: MessageSchema) {
    message.place(of: schema.fields[0]).store(self.seconds)
    message.place(of: schema.fields[1]).store(self.nanoseconds)
  }

  var description: String { "\(self.seconds) s and \(self.nanoseconds) ns" }

  /// Whether the time is from the start of the year 1 to the end of the year 9999.
  var isTimestamp: Bool {
    (-62_135_596_800...253_402_300_799).contains(self.seconds)
      && (0..<1_000_000_000).contains(self.nanoseconds)
  }

  /// Whether the time is at most ten thousand years in either direction, and both parts have the same sign.
  var isDuration: Bool {
    (-315_576_000_000...315_576_000_000).contains(self.seconds)
      && (-999_999_999...999_999_999).contains(self.nanoseconds)
      && (self.seconds == 0 || self.nanoseconds == 0 || (self.seconds < 0) == (self.nanoseconds < 0))
  }

  // MARK: Writing

  func writeTimestamp(to out: inout JSONWriter) {
    let days = Self.floorDivide(self.seconds, by: Self.secondsPerDay)
    let rest = Int(self.seconds - days * Self.secondsPerDay)
    let date = Self.date(ofDay: days)
    out.byte(UInt8(ascii: "\""))
    out.padded(date.year, digits: 4)
    out.byte(UInt8(ascii: "-"))
    out.padded(date.month, digits: 2)
    out.byte(UInt8(ascii: "-"))
    out.padded(date.day, digits: 2)
    out.byte(UInt8(ascii: "T"))
    out.padded(rest / 3600, digits: 2)
    out.byte(UInt8(ascii: ":"))
    out.padded(rest / 60 % 60, digits: 2)
    out.byte(UInt8(ascii: ":"))
    out.padded(rest % 60, digits: 2)
    self.writeFraction(to: &out)
    out.raw("Z\"")
  }

  func writeDuration(to out: inout JSONWriter) {
    out.byte(UInt8(ascii: "\""))
    if self.seconds < 0 || self.nanoseconds < 0 { out.byte(UInt8(ascii: "-")) }
    out.unsigned(self.seconds.magnitude)
    self.writeFraction(to: &out)
    out.raw("s\"")
  }

  /// Writes 0, 3, 6 or 9 digits.
  private func writeFraction(to out: inout JSONWriter) {
    let nanoseconds = Int(self.nanoseconds.magnitude)
    if nanoseconds == 0 { return }
    out.byte(UInt8(ascii: "."))
    if nanoseconds % 1_000_000 == 0 {
      out.padded(nanoseconds / 1_000_000, digits: 3)
    } else if nanoseconds % 1000 == 0 {
      out.padded(nanoseconds / 1000, digits: 6)
    } else {
      out.padded(nanoseconds, digits: 9)
    }
  }

  // MARK: Reading

  /// Parses RFC 3339, with any offset.
  init?(timestamp text: UnsafeRawBufferPointer) {
    var text = Scanner(text)
    guard let year = text.digits(4), text.take("-"), let month = text.digits(2), text.take("-"),
      let day = text.digits(2), text.take("T"), let hour = text.digits(2), text.take(":"),
      let minute = text.digits(2), text.take(":"), let second = text.digits(2),
      let nanoseconds = text.fraction(), let offset = text.offset(), text.isAtEnd,
      year >= 1, (1...12).contains(month), day >= 1, day <= Self.days(inMonth: month, year: year),
      hour < 24, minute < 60, second < 60
    else { return nil }
    let days = Self.day(year: year, month: month, day: day)
    let time = Int64(hour * 3600 + minute * 60 + second - offset)
    self.init(seconds: days * Self.secondsPerDay + time, nanoseconds: nanoseconds)
    guard self.isTimestamp else { return nil }
  }

  /// Parses seconds with at most nine digits after the point, and an `s`.
  init?(duration text: UnsafeRawBufferPointer) {
    var text = Scanner(text)
    let isNegative = text.take("-")
    guard let seconds = text.integer(), let nanoseconds = text.fraction(), text.take("s"), text.isAtEnd
    else { return nil }
    self.init(
      seconds: isNegative ? -seconds : seconds,
      nanoseconds: isNegative ? -nanoseconds : nanoseconds
    )
    guard self.isDuration else { return nil }
  }

  private struct Scanner {
    private var rest: UnsafeRawBufferPointer.SubSequence

    init(_ text: UnsafeRawBufferPointer) {
      self.rest = text[...]
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
      guard self.rest.first == UInt8(ascii: character) else { return false }
      self.rest.removeFirst()
      return true
    }

    private mutating func digit() -> Int? {
      guard let byte = self.rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else {
        return nil
      }
      self.rest.removeFirst()
      return Int(byte - UInt8(ascii: "0"))
    }

    mutating func digits(_ count: Int) -> Int? {
      var value = 0
      for _ in 0..<count {
        guard let digit = self.digit() else { return nil }
        value = 10 * value + digit
      }
      return value
    }

    /// At least one digit, and at most as many digits as a duration has.
    mutating func integer() -> Int64? {
      var value: Int64?
      while let digit = self.digit() {
        value = 10 * (value ?? 0) + Int64(digit)
        if let value, value > 1_000_000_000_000 { return nil }
      }
      return value
    }

    /// Nanoseconds; 0 if there is no point.
    mutating func fraction() -> Int32? {
      guard self.take(".") else { return 0 }
      var value: Int32 = 0
      var count = 0
      while let digit = self.digit() {
        guard count < 9 else { return nil }
        value = 10 * value + Int32(digit)
        count += 1
      }
      guard count > 0 else { return nil }
      for _ in count..<9 { value *= 10 }
      return value
    }

    /// Seconds east of UTC.
    mutating func offset() -> Int? {
      if self.take("Z") { return 0 }
      let sign = self.take("+") ? 1 : self.take("-") ? -1 : 0
      guard sign != 0, let hours = self.digits(2), self.take(":"), let minutes = self.digits(2), hours < 24,
        minutes < 60
      else { return nil }
      return sign * (hours * 3600 + minutes * 60)
    }
  }

  // MARK: The calendar

  private static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
    value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor)
  }

  private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

  private static func days(inMonth month: Int, year: Int) -> Int {
    switch month {
    case 2: self.isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Days before the year, counted from the start of the year 1.
  private static func days(beforeYear year: Int) -> Int {
    let past = year - 1
    return 365 * past + past / 4 - past / 100 + past / 400
  }

  private static let epoch = Self.days(beforeYear: 1970)

  /// Days since 1970.
  private static func day(year: Int, month: Int, day: Int) -> Int64 {
    let months = (1..<month).reduce(0) { $0 + self.days(inMonth: $1, year: year) }
    return Int64(self.days(beforeYear: year) + months + day - 1 - self.epoch)
  }

  /// - Parameter day: Since 1970, in the years 1 to 9999.
  private static func date(ofDay day: Int64) -> (year: Int, month: Int, day: Int) {
    var rest = Int(day) + self.epoch
    // The first estimate is never too early. It is too late by the leap days, which are less than seven years in all.
    var year = rest / 365 + 1
    while self.days(beforeYear: year) > rest { year -= 1 }
    rest -= self.days(beforeYear: year)
    var month = 1
    while rest >= self.days(inMonth: month, year: year) {
      rest -= self.days(inMonth: month, year: year)
      month += 1
    }
    return (year, month, rest + 1)
  }
}
