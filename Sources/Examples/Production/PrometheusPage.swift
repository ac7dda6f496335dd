import ConnectInterceptors
import Metrics
import Synchronization

/// A backend of swift-metrics that shows its metrics as the text that Prometheus reads. A service answers `GET /metrics` with
/// ``text``, as `text/plain; version=0.0.4`.
///
/// Simple, to show what is needed; packages for Prometheus or OpenTelemetry do it with more care.
final class PrometheusPage: MetricsFactory {
  /// The metrics with one name.
  private struct Family {
    let kind: MetricDescription.Kind
    let unit: String
    let summary: String
    /// By the text of the labels.
    var series: [String: Series] = [:]
  }

  private let descriptions: [String: MetricDescription]
  private let families = Mutex<[String: Family]>([:])

  /// - Parameter descriptions: What is known of units; other timers count in seconds, and what else there is has no unit.
  init(_ descriptions: [MetricDescription]) {
    self.descriptions = Dictionary(descriptions.map { ($0.name, $0) }) { first, _ in first }
  }

  // MARK: The page

  var text: String {
    let families = self.families.withLock { $0 }
    return families.sorted { $0.key < $1.key }.map { Self.lines(of: $0.value, named: $0.key) }.joined()
  }

  private static func lines(of family: Family, named name: String) -> String {
    // Prometheus has no dots in names, and writes units behind them.
    var name = name.replacing(".", with: "_")
    switch family.unit {
    case "s": name += "_seconds"
    case "By": name += "_bytes"
    default: break
    }
    let type =
      switch family.kind {
      case .counter: "counter"
      case .upDownCounter: "gauge"
      case .histogram: "histogram"
      }
    if family.kind == .counter { name += "_total" }
    var text = "# HELP \(name) \(family.summary)\n# TYPE \(name) \(type)\n"
    for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
      text += series.lines(named: name, labels)
    }
    return text
  }

  // MARK: MetricsFactory

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    self.series(label, dimensions, .counter)
  }

  func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    self.series(label, dimensions, .upDownCounter)
  }

  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    self.series(label, dimensions, aggregate ? .histogram : .upDownCounter)
  }

  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    self.series(label, dimensions, .histogram, unit: "s")
  }

  // Series stay on the page.
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyMeter(_ handler: any MeterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}

  private func series(
    _ name: String,
    _ dimensions: [(String, String)],
    _ kind: MetricDescription.Kind,
    unit: String = ""
  ) -> Series {
    let labels = dimensions.map { "\($0.replacing(".", with: "_"))=\"\(Self.escaped($1))\"" }.joined(
      separator: ","
    )
    let description = self.descriptions[name]
    let unit = description?.unit ?? unit
    return self.families.withLock { families in
      if let known = families[name]?.series[labels] { return known }
      let made = Series(
        bounds: unit == "s" ? Series.seconds : unit == "By" ? Series.bytes : Series.counts,
        kind
      )
      let family = Family(kind: kind, unit: unit, summary: description?.summary ?? name)
      families[name, default: family].series[labels] = made
      return made
    }
  }

  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }
}

/// One metric with its labels.
final class Series: CounterHandler, MeterHandler, RecorderHandler, TimerHandler {
  /// The bounds that gRFC A66 and A96 recommend, some of them.
  static let seconds = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100]
  static let bytes = [0, 1024, 4096, 65536, 1_048_576, 4_194_304, 67_108_864].map(Double.init)
  static let counts = [1, 2, 3, 4, 5, 10].map(Double.init)

  private struct Values {
    var sum = 0.0
    var count = 0
    /// How many values are at most as large as the bound with the same index.
    var buckets: [Int]
  }

  private let bounds: [Double]
  private let kind: MetricDescription.Kind
  private let values: Mutex<Values>

  init(bounds: [Double], _ kind: MetricDescription.Kind) {
    self.bounds = bounds
    self.kind = kind
    self.values = Mutex(Values(buckets: bounds.map { _ in 0 }))
  }

  func lines(named name: String, _ labels: String) -> String {
    let values = self.values.withLock { $0 }
    let braces = labels.isEmpty ? "" : "{\(labels)}"
    guard self.kind == .histogram else { return "\(name)\(braces) \(values.sum)\n" }
    var text = ""
    let comma = labels.isEmpty ? "" : ","
    for (bound, count) in zip(self.bounds.map { "\($0)" } + ["+Inf"], values.buckets + [values.count]) {
      text += "\(name)_bucket{\(labels)\(comma)le=\"\(bound)\"} \(count)\n"
    }
    return text + "\(name)_sum\(braces) \(values.sum)\n\(name)_count\(braces) \(values.count)\n"
  }

  private func add(_ value: Double) {
    self.values.withLock { values in
      values.sum += value
      guard self.kind == .histogram else { return }
      values.count += 1
      for (index, bound) in self.bounds.enumerated() where value <= bound { values.buckets[index] += 1 }
    }
  }

  func increment(by amount: Int64) { self.add(Double(amount)) }
  func increment(by amount: Double) { self.add(amount) }
  func decrement(by amount: Double) { self.add(-amount) }
  func set(_ value: Int64) { self.set(Double(value)) }
  func set(_ value: Double) { self.values.withLock { $0.sum = value } }
  func record(_ value: Int64) { self.record(Double(value)) }
  func record(_ value: Double) { if self.kind == .histogram { self.add(value) } else { self.set(value) } }
  func recordNanoseconds(_ duration: Int64) { self.add(Double(duration) / 1e9) }
  func reset() { self.values.withLock { $0 = Values(buckets: self.bounds.map { _ in 0 }) } }
}
