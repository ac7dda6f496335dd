/// What a run has shown, printed as one line of JSON.
public struct Report: Sendable {
  public var fields: [(name: String, value: Double)] = []

  public init(fields: [(name: String, value: Double)]) {
    self.fields = fields
  }

  /// - Parameters:
  ///   - samples: What all workers have seen.
  ///   - cost: What it cost.
  public init(samples: Samples, cost: Cost) {
    let count = Double(max(samples.count, 1))
    let latencies = samples.latencies.sorted()
    func percentile(_ share: Double) -> Double {
      latencies.isEmpty ? 0 : Double(latencies[Int(Double(latencies.count - 1) * share)]) / 1000
    }
    self.fields = [
      ("count", Double(samples.count)),
      ("cpu_us", cost.cpu / count),
      ("system_cpu_us", cost.systemCPU / count),
      ("allocations", cost.allocations / count),
      ("p50_us", percentile(0.5)),
      ("p99_us", percentile(0.99)),
      ("peak_rss_kb", Double(Cost.peakMemory)),
    ]
  }

  public func print() {
    let members = self.fields.map { "\"\($0.name)\": \(($0.value * 1000).rounded() / 1000)" }
    Swift.print("{\(members.joined(separator: ", "))}")
  }
}
