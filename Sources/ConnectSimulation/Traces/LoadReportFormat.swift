internal import Connect

/// The report of `connectrpc load --json`: percentiles in place of calls, so that what is made of it is less exact.
struct LoadReportFormat {
  /// How many calls stand for all.
  private static let sampleCount = 10_000
  /// The report does not name its method.
  static let method = "/load"

  private var bytes: [UInt8] = []

  mutating func read(_ bytes: [UInt8], _ builder: inout TraceBuilder) {
    if self.bytes.count <= LineSplitter.longestLine { self.bytes += bytes }
  }

  mutating func finish(_ builder: inout TraceBuilder) {
    do throws(JSONParser.Failure) {
      self.add(try JSONParser.parse(String(decoding: self.bytes, as: UTF8.self)), to: &builder)
    } catch {
      builder.mistake("no JSON: \(error.problem)", line: error.line)
    }
  }

  private func add(_ report: JSONValue, to builder: inout TraceBuilder) {
    guard let calls = report["calls"]?.double.flatMap({ Int(exactly: $0) }),
      (1...1_000_000_000_000).contains(calls),
      let rate = report["callsPerSecond"]?.double, rate > 0,
      case .object(let latencies)? = report["latencyMilliseconds"]
    else {
      return builder.mistake("the report has no calls, callsPerSecond and latencyMilliseconds", line: 1)
    }
    builder.markApproximate()
    var points: [(part: Double, seconds: Double)] = []
    for latency in latencies {
      guard let milliseconds = latency.value.double, milliseconds >= 0 else { continue }
      if latency.name == "max" { points.append((1, milliseconds / 1e3)) }
      guard latency.name.hasPrefix("p"), let percent = Double(latency.name.dropFirst()), percent < 100 else {
        continue
      }
      points.append((percent / 100, milliseconds / 1e3))
    }
    points.sort { ($0.part, $0.seconds) < ($1.part, $1.seconds) }
    guard let least = points.first else {
      return builder.mistake("the report has no percentiles in latencyMilliseconds", line: 1)
    }
    // What is below the lowest percentile is not known: from half of it on.
    points.insert((0, least.seconds / 2), at: 0)
    let servers =
      report["addresses"]?.elements.compactMap { address -> (value: String, weight: Double)? in
        guard let name = address["address"]?.text, let calls = address["calls"]?.double else { return nil }
        return (name, calls)
      } ?? []
    self.add(calls, rate, points, self.failures(report), servers, to: &builder)
  }

  /// The value at a place, where each value takes its weight; nil behind all of them.
  private static func pick<Value>(_ place: Double, of values: [(value: Value, weight: Double)]) -> Value? {
    var bound = 0.0
    return values.first { candidate in
      bound += candidate.weight
      return place < bound
    }?.value
  }

  private func failures(_ report: JSONValue) -> [(value: Code, weight: Double)] {
    guard case .object(let codes)? = report["codes"] else { return [] }
    return codes.compactMap { entry in
      guard let code = Code(name: entry.name), let count = entry.value.double else { return nil }
      return (code, count)
    }
  }

  private func add(
    _ calls: Int,
    _ rate: Double,
    _ points: [(part: Double, seconds: Double)],
    _ failures: [(value: Code, weight: Double)],
    _ servers: [(value: String, weight: Double)],
    to builder: inout TraceBuilder
  ) {
    let samples = min(calls, Self.sampleCount)
    let allServers = servers.reduce(0) { $0 + $1.weight }
    for sample in 0..<samples {
      let part = (Double(sample) + 0.5) / Double(samples)
      let upper = points.firstIndex { $0.part >= part } ?? points.count - 1
      let lower = max(upper - 1, 0)
      let width = points[upper].part - points[lower].part
      let share = width > 0 ? (part - points[lower].part) / width : 1
      let seconds = points[lower].seconds + (points[upper].seconds - points[lower].seconds) * share
      // Spread over time, codes and servers as if calls were in no order.
      func place(_ prime: Int) -> Double { Double((sample * prime) % samples) / Double(samples) }
      var call = TracedCall(
        method: Self.method,
        server: Self.pick(place(1_299_709) * allServers, of: servers),
        start: place(7_919) * Double(calls) / rate,
        duration: TraceTime.duration(seconds) ?? .zero,
        code: Self.pick(place(104_729) * Double(calls), of: failures) ?? .ok
      )
      call.count = calls * (sample + 1) / samples - calls * sample / samples
      builder.add(call, line: 1, isOrdered: false)
    }
  }
}
