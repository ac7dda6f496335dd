internal import Connect

/// Calls over time, in parts of equal length. With too many parts, each two become one.
struct Timeline: Sendable, Hashable {
  struct Part: Sendable, Hashable {
    var calls = 0
    var failures = 0
    /// The sum of the durations, in seconds.
    var busySeconds = 0.0
    /// Of calls that succeeded.
    var latencies = CoarseHistogram()

    mutating func add(_ call: TracedCall) {
      self.calls += call.count
      self.busySeconds += call.duration.seconds * Double(call.count)
      if call.code == .ok {
        self.latencies.add(call.duration, count: call.count)
      } else {
        self.failures += call.count
      }
    }

    mutating func add(_ other: Part) {
      self.calls += other.calls
      self.failures += other.failures
      self.busySeconds += other.busySeconds
      self.latencies.add(other.latencies)
    }
  }

  static let maximumCount = 4_096

  /// The length of a part in seconds: a power of two.
  private(set) var length = 1
  /// The number of the first part, counted from 1970.
  private var first = 0
  private(set) var parts: [Part] = []
  private var range: ClosedRange<Double>?

  var seconds: Double { self.range.map { max($0.upperBound - $0.lowerBound, 1) } ?? 0 }
  var calls: Int { self.parts.reduce(0) { $0 + $1.calls } }
  var busySeconds: Double { self.parts.reduce(0) { $0 + $1.busySeconds } }

  mutating func add(_ call: TracedCall, at time: Double) {
    // Other times are no times of logs.
    guard time >= 0, time < 1e11 else { return }
    let index = self.index(from: time, to: time)
    self.parts[index].add(call)
  }

  /// Adds a part that may be longer or shorter than those that are here: it counts at its beginning.
  private mutating func add(_ part: Part, from start: Double, to end: Double) {
    let index = self.index(from: start, to: end)
    self.parts[index].add(part)
  }

  /// The place of the part that begins at a time, where there is one from now on.
  private mutating func index(from start: Double, to end: Double) -> Int {
    let range = self.range ?? start...max(start, end)
    self.range = min(range.lowerBound, start)...max(range.upperBound, end)
    if self.parts.isEmpty { self.first = Int(start) / self.length }
    var index = Int(start) / self.length
    while max(index, self.last) - min(index, self.first) >= Self.maximumCount {
      self.halve()
      index = Int(start) / self.length
    }
    if index < self.first {
      self.parts.insert(contentsOf: repeatElement(Part(), count: self.first - index), at: 0)
      self.first = index
    } else if index > self.last {
      self.parts.append(contentsOf: repeatElement(Part(), count: index - self.last))
    }
    return index - self.first
  }

  private var last: Int { self.first + self.parts.count - 1 }

  private mutating func halve() {
    self.length *= 2
    guard !self.parts.isEmpty else {
      self.first /= 2
      return
    }
    let first = self.first / 2
    var halves = Array(repeating: Part(), count: self.last / 2 - first + 1)
    for (index, part) in self.parts.enumerated() { halves[(self.first + index) / 2 - first].add(part) }
    (self.first, self.parts) = (first, halves)
  }

  mutating func add(_ other: Timeline) {
    guard let range = other.range else { return }
    while self.length < other.length { self.halve() }
    for (index, part) in other.parts.enumerated() where part.calls > 0 {
      let start = Double((other.first + index) * other.length)
      self.add(
        part,
        from: max(start, range.lowerBound),
        to: min(start + Double(other.length), range.upperBound)
      )
    }
  }
}

/// Times in classes of a quarter of their size: small enough to have one for each second.
struct CoarseHistogram: Sendable, Hashable {
  /// The upper bounds of the classes, in seconds: from 10 microseconds to some minutes.
  static let bounds: [Double] = {
    var bounds = [0.000_01]
    while bounds.count < 80 { bounds.append((bounds.last ?? 1) * 1.25) }
    return bounds
  }()

  private(set) var counts: [UInt32] = []
  private(set) var count = 0

  mutating func add(_ time: Duration, count: Int = 1) {
    let seconds = time.seconds
    var (low, high) = (0, Self.bounds.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if Self.bounds[middle] < seconds { low = middle + 1 } else { high = middle }
    }
    self.add(UInt32(clamping: count), at: low)
  }

  private mutating func add(_ count: UInt32, at index: Int) {
    guard count > 0 else { return }
    if index >= self.counts.count {
      self.counts.append(contentsOf: repeatElement(0, count: index + 1 - self.counts.count))
    }
    let sum = self.counts[index].addingReportingOverflow(count)
    self.counts[index] = sum.overflow ? .max : sum.partialValue
    self.count += Int(count)
  }

  mutating func add(_ other: CoarseHistogram) {
    for (index, count) in other.counts.enumerated() { self.add(count, at: index) }
  }

  /// In seconds, interpolated within a class; nil if there are no times.
  func quantile(_ part: Double) -> Double? {
    guard self.count > 0 else { return nil }
    let rank = Double(self.count) * part
    var sum = 0.0
    for (index, count) in self.counts.enumerated() where count > 0 {
      let next = sum + Double(count)
      if rank <= next {
        let lower = index > 0 ? Self.bounds[index - 1] : 0
        return lower + (Self.bounds[index] - lower) * (rank - sum) / Double(count)
      }
      sum = next
    }
    return Self.bounds[max(self.counts.count - 1, 0)]
  }

  /// In seconds; nil if there are no times.
  var mean: Double? {
    guard self.count > 0 else { return nil }
    var sum = 0.0
    for (index, count) in self.counts.enumerated() where count > 0 {
      let lower = index > 0 ? Self.bounds[index - 1] : 0
      sum += Double(count) * (lower + Self.bounds[index]) / 2
    }
    return sum / Double(self.count)
  }
}
