internal import Connect

extension JSONValue {
  /// The member of an object; nil if there is none.
  subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  /// The first of these members that is there.
  subscript(first names: String...) -> JSONValue? {
    for name in names { if let value = self[name], value != .null { return value } }
    return nil
  }

  var elements: [JSONValue] { if case .array(let values) = self { values } else { [] } }

  /// The text of a string or of a number.
  var text: String? {
    switch self {
    case .string(let text), .number(let text): text
    default: nil
    }
  }

  /// A number, also in quotes.
  var double: Double? { self.text.flatMap(Double.init) }
}

/// Times and durations as logs write them.
enum TraceTime {
  /// In seconds since 1970, of RFC 3339 or of a number of seconds, milliseconds, microseconds or nanoseconds since 1970.
  static func seconds(_ value: JSONValue) -> Double? {
    guard let text = value.text else { return nil }
    if let number = Double(text) {
      guard number >= 0, number < 1e20 else { return nil }
      // Until the year 5138, a number of seconds is below.
      switch number {
      case ..<1e11: return number
      case ..<1e14: return number / 1e3
      case ..<1e17: return number / 1e6
      default: return number / 1e9
      }
    }
    return self.rfc3339(text) ?? self.commonLog(text)
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// `27/Nov/2026:08:00:00 +0000`, as nginx and Apache write it.
  private static func commonLog(_ text: String) -> Double? {
    let parts = text.split(maxSplits: 3, omittingEmptySubsequences: false) { $0 == "/" || $0 == ":" }
    guard parts.count == 4, let month = self.months.firstIndex(of: String(parts[1])) else { return nil }
    let rest = parts[3].replacing(" ", with: "")
    // Without an offset, nobody knows which time it is.
    guard rest.utf8.count == 13 else { return nil }
    return self.rfc3339("\(parts[2])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[0])T\(rest)")
  }

  private static func rfc3339(_ text: String) -> Double? {
    let bytes = Array(text.utf8)
    func number(_ start: Int, _ count: Int) -> Int? {
      guard start + count <= bytes.count else { return nil }
      var value = 0
      for byte in bytes[start..<start + count] {
        guard (0x30...0x39).contains(byte) else { return nil }
        value = value * 10 + Int(byte - 0x30)
      }
      return value
    }
    guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
      let minute = number(14, 2), let second = number(17, 2), (1...12).contains(month),
      (1...31).contains(day),
      bytes[4] == UInt8(ascii: "-"), bytes[13] == UInt8(ascii: ":"), hour < 25, minute < 60, second < 62
    else { return nil }
    var position = 19
    var fraction = 0.0
    if position < bytes.count, bytes[position] == UInt8(ascii: ".") || bytes[position] == UInt8(ascii: ",") {
      position += 1
      var scale = 0.1
      while position < bytes.count, (0x30...0x39).contains(bytes[position]) {
        fraction += Double(bytes[position] - 0x30) * scale
        scale /= 10
        position += 1
      }
    }
    var offset = 0
    if position < bytes.count, bytes[position] != UInt8(ascii: "Z"), bytes[position] != UInt8(ascii: "z") {
      let sign = bytes[position] == UInt8(ascii: "-") ? -1 : 1
      let hasColon = position + 3 < bytes.count && bytes[position + 3] == UInt8(ascii: ":")
      guard let hours = number(position + 1, 2), let minutes = number(position + (hasColon ? 4 : 3), 2) else {
        return nil
      }
      offset = sign * (hours * 60 + minutes) * 60
    }
    return Double(self.days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset)
      + fraction
  }

  /// Days from 1970-01-01 in the Gregorian calendar: years begin in March, so that leap days come last.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }

  private static let units: [(suffix: String, seconds: Double)] = [
    ("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3_600),
  ]

  /// A duration such as `12ms`, `1.5s`, `1m30s`, or a number in `unit` seconds. Nil for anything else.
  static func duration(_ value: JSONValue, unit: Double) -> Duration? {
    guard let text = value.text else { return nil }
    if let number = Double(text) { return self.duration(number * unit) }
    var rest = text.filter { $0 != " " }[...]
    var sum = 0.0
    guard !rest.isEmpty else { return nil }
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isNumber || $0 == "." || $0 == "-" }
      rest = rest.dropFirst(digits.count)
      guard let number = Double(digits) else { return nil }
      guard
        let unit = self.units.first(where: { unit in
          rest.hasPrefix(unit.suffix) && (rest.dropFirst(unit.suffix.count).first.map { $0.isNumber } ?? true)
        })
      else { return nil }
      sum += number * unit.seconds
      rest = rest.dropFirst(unit.suffix.count)
    }
    return self.duration(sum)
  }

  /// Nil for what no clock measures.
  static func duration(_ seconds: Double) -> Duration? {
    guard seconds.isFinite, seconds.magnitude < 1e10 else { return nil }
    return .nanoseconds(Int64((seconds * 1e9).rounded().clamped(to: -9e18...9e18)))
  }
}

extension Double {
  fileprivate func clamped(to range: ClosedRange<Double>) -> Double {
    min(max(self, range.lowerBound), range.upperBound)
  }
}

extension Code {
  /// A code as logs have it: a number of gRPC, a name of gRPC or Connect, or a status of HTTP.
  ///
  /// - Parameter isHTTP: Whether a number is a status of HTTP.
  init?(trace value: JSONValue, isHTTP: Bool = false) {
    guard let given = value.text else { return nil }
    if let code = Self.names[given] {
      self = code
      return
    }
    let text = given.filter { $0 != " " }
    guard !text.isEmpty else { return nil }
    if let number = Int(text) {
      if number == 499 || (number == 0 && (isHTTP || text.utf8.count == 3)) {
        // The client has gone before there was a response: nginx writes 499 or 000, Envoy 0.
        self = .canceled
      } else if !isHTTP, let code = Code(rawValue: number) {
        self = code
      } else if (100...599).contains(number) {
        self = (200...399).contains(number) ? .ok : Code(httpStatus: number)
      } else {
        return nil
      }
      return
    }
    let plain = text.lowercased().filter { $0 != "_" && $0 != "-" }
    let name = plain == "cancelled" ? "canceled" : plain == "internalerror" ? "internal" : plain
    guard let code = Self.names[name] else { return nil }
    self = code
  }

  /// Names as they mostly are: `deadline_exceeded`, `DEADLINE_EXCEEDED`, `DeadlineExceeded` and `deadlineexceeded`.
  private static let names: [String: Code] = {
    var names: [String: Code] = [:]
    for code in Code.allCases {
      let words = code.name.split(separator: "_")
      for name in [
        code.name, code.name.uppercased(), words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(),
        words.joined(),
      ] { names[name] = code }
    }
    return names
  }()
}
