extension TrafficTrace: CustomStringConvertible {
  public var description: String {
    func figure(_ part: Double) -> String {
      self.total.percentile(part).map { Plot.number($0.seconds * 1e3) } ?? "-"
    }
    var lines = [
      "\(Plot.count(self.total.calls)) calls of \(self.methods.count) methods on \(self.servers.count) servers in "
        + "\(Plot.number(self.seconds)) s, \(Plot.number(self.callsPerSecond)) a second",
      "p50 \(figure(0.5)) ms, p90 \(figure(0.9)) ms, p99 \(figure(0.99)) ms, failed \(Plot.percent(self.total.failureRate)), "
        + "\(Plot.number(self.concurrency)) at a time",
    ]
    if self.mistakes.count > 0 { lines.append(self.mistakes.description) }
    return lines.joined(separator: "\n")
  }
}
