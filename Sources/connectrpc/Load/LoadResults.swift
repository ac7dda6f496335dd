import Connect
import Histogram

/// The latencies and outcomes of calls.
struct LoadResults: Sendable {
  /// Longer latencies count as this.
  static let maximumLatency = Duration.seconds(3600)

  /// In microseconds, from when a call was due to its end: so the delay of a call that begins late counts.
  var latencies = Histogram<UInt64>(
    highestTrackableValue: UInt64(maximumLatency / .microseconds(1)),
    numberOfSignificantValueDigits: .three
  )
  var codes: [Code: Int] = [:]
  /// The first message of each code.
  var messages: [Code: String] = [:]
  var responseBytes = 0
  var requestBytes = 0

  var count: Int { self.codes.values.reduce(0, +) }

  mutating func note(_ end: LoadRun.End, latency: Duration) {
    let error = end.error
    self.requestBytes += end.requestBytes
    self.responseBytes += end.responseBytes
    let code = error?.code ?? .ok
    self.codes[code, default: 0] += 1
    if let message = error?.message, self.messages[code] == nil { self.messages[code] = message }
    let microseconds = min(max(latency, .zero), Self.maximumLatency) / .microseconds(1)
    self.latencies.record(UInt64(microseconds))
  }

  mutating func add(_ other: LoadResults) {
    self.latencies.add(other.latencies)
    self.codes.merge(other.codes, uniquingKeysWith: +)
    self.messages.merge(other.messages) { first, _ in first }
    self.responseBytes += other.responseBytes
    self.requestBytes += other.requestBytes
  }

  func latency(at percentile: Double) -> Duration {
    .microseconds(Int64(clamping: self.latencies.valueAtPercentile(percentile)))
  }
}
