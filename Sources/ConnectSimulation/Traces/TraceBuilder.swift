internal import Connect
internal import Foundation

/// Checks the calls that a format has found, and adds them to a trace.
struct TraceBuilder {
  static let expectation =
    "give an access log with one JSON object a line (time, method, duration, code), OTLP traces in JSON, a cassette, or the "
    + "report of connectrpc load --json"
  /// How much earlier than the call before a call of the same server may be, in seconds: logs are not quite in order.
  private static let patience = 60.0
  /// How much later it may be: a day without calls.
  private static let longestGap = 86_400.0
  /// So many calls in a row make another time right: that of another file, or of a clock that was set.
  private static let proof = 20
  private static let longestName = 512

  let name: String
  private let methods: Set<String>?
  private(set) var trace = TrafficTrace()
  private var readCount = 0
  /// The latest time of each server.
  private var latest: [String: Double] = [:]
  /// How many calls in a row did not fit the latest time of their server.
  private var jumps: [String: Int] = [:]
  private var firstOther = Mistakes()
  /// The paths of methods as the trace has them.
  private var paths: [String: String] = [:]

  init(name: String, methods: Set<String>?) {
    self.name = name
    self.methods = methods
  }

  mutating func mistake(_ problem: String, line: Int) {
    self.trace.mistakes.add(problem, at: "\(self.name):\(line)")
  }

  /// A line that is not about a call.
  mutating func other(_ problem: String, line: Int) {
    self.trace.otherLines += 1
    self.firstOther.add(problem, at: "\(self.name):\(line)")
  }

  /// - Parameters:
  ///   - call: Its durations are checked here.
  ///   - isOrdered: Whether calls of a server come in the order of their times.
  mutating func add(_ call: TracedCall, line: Int, isOrdered: Bool) {
    var call = call
    guard let method = self.path(call.method) else {
      return self.mistake(
        call.method.isEmpty
          ? "the name of the method is empty"
          : "\"\(call.method.prefix(60))\" is no method such as /package.Service/Method",
        line: line
      )
    }
    call.method = method
    if let methods = self.methods, !methods.contains(method) {
      return self.mistake("the method \(method.prefix(100)) is not known", line: line)
    }
    guard call.duration >= .zero, call.duration < .seconds(86_400 * 365) else {
      return self.mistake(
        "the duration is \(call.duration < .zero ? "negative" : "longer than a year")",
        line: line
      )
    }
    if isOrdered, let start = call.start,
      let problem = self.clockProblem(start + call.duration.seconds, server: call.server ?? "")
    {
      return self.mistake(problem, line: line)
    }
    self.readCount += call.count
    self.trace.add(call)
  }

  private mutating func clockProblem(_ end: Double, server: String) -> String? {
    guard let last = self.latest[server] else {
      if self.latest.count < TrafficTrace.maximumMethods { self.latest[server] = end }
      return nil
    }
    guard end < last - Self.patience || end > last + Self.longestGap else {
      self.latest[server] = max(end, last)
      if !self.jumps.isEmpty { self.jumps[server] = nil }
      return nil
    }
    let jumps = (self.jumps[server] ?? 0) + 1
    guard jumps <= Self.proof else {
      (self.latest[server], self.jumps[server]) = (end, nil)
      return nil
    }
    self.jumps[server] = jumps
    return end < last
      ? "the clock runs back by \(Plot.number(last - end)) s"
      : "the clock jumps ahead by \(Plot.number(end - last)) s"
  }

  mutating func finish() throws(TraceError) -> TrafficTrace {
    let mistakes = self.trace.mistakes
    guard mistakes.count <= self.readCount, self.readCount > 0 else {
      let first = (mistakes.count > 0 ? mistakes : self.firstOther).first.map { "\n  \($0)" }.joined()
      throw TraceError(
        name: self.name,
        problem: (self.readCount == 0
          ? "there is no call in it that can be used" : "more than half of it is wrong")
          + "; \(Self.expectation)\(first)"
      )
    }
    return self.trace
  }

  mutating func markApproximate() { self.trace.isApproximate = true }

  private mutating func path(_ text: String) -> String? {
    if let path = self.paths[text] { return path }
    guard let path = Self.path(text) else { return nil }
    if self.paths.count < TrafficTrace.maximumMethods { self.paths[text] = path }
    return path
  }

  /// `/package.Service/Method` of what logs have: `POST /package.Service/Method?x HTTP/2`, a URL, or the name without slash. Nil if
  /// it is none of these.
  static func path(_ text: String) -> String? {
    var rest = text[...]
    let words = rest.split(separator: " ")
    if words.count > 1, let path = words.first(where: { $0.contains("/") && !$0.hasPrefix("HTTP/") }) {
      rest = path
    }
    if let scheme = rest.range(of: "://") {
      rest = rest[scheme.upperBound...].drop { $0 != "/" }
    }
    rest = rest.prefix { $0 != "?" && $0 != "#" }
    while rest.last == "/" { rest.removeLast() }
    guard !rest.isEmpty, rest.utf8.count <= Self.longestName, rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
    else {
      return nil
    }
    return rest.hasPrefix("/") ? String(rest) : "/\(rest)"
  }
}
