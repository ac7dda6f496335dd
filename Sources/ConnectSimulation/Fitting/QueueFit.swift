internal import Connect
internal import ConnectChannels

/// Whether requests wait for each other at servers, and how many a server works on at the same time: from latency against load.
///
/// The latency in quiet times is the time of the work. If it is longer in busy times, a limit is looked for that explains how much
/// longer: for each candidate, a queue is simulated at the load of each level.
struct QueueFit {
  /// Seconds of about the same load.
  private struct Level {
    /// Calls in a second, for each server.
    var rate: Double
    var latencies: CoarseHistogram
  }

  private static let levelCount = 8
  private static let windowSeconds = 5
  /// Levels with fewer calls say little.
  private static let fewest = 100
  /// How much longer calls take in busy times, at least, if they wait.
  private static let rise = 1.2
  private static let arrivals = 4_000
  /// How much of the error of "no queue" a limit may leave.
  private static let remainingError = 0.6

  /// Nil if no limit shows.
  private(set) var limit: Int?
  private(set) var notes: [String] = []
  private var quiet = CoarseHistogram()
  private var all = CoarseHistogram()

  init(_ trace: TrafficTrace, servers: Int) {
    guard !trace.isApproximate, let levels = Self.levels(trace.timeline, servers: servers) else {
      self.notes.append("whether requests wait for each other does not show: give a limit if you know it")
      return
    }
    let quiet = Self.quiet(levels)
    guard let least = quiet.mean, let most = levels.last?.latencies.mean, most > least * Self.rise else {
      self.notes.append("latency does not rise with load: no limit of concurrency is assumed")
      return
    }
    func error(_ limit: Int?) -> Double {
      levels.reduce(0) { sum, level in
        let predicted = limit.map { Self.queue(level.rate, quiet, $0, servers) } ?? quiet
        let errors = [
          (predicted.mean, level.latencies.mean), (predicted.quantile(0.9), level.latencies.quantile(0.9)),
        ]
        return errors.reduce(sum) { sum, pair in
          guard let one = pair.0, let two = pair.1, one > 0, two > 0 else { return sum }
          return sum + (one / two).logarithm * (one / two).logarithm
        }
      }
    }
    let busiest = (levels.last?.rate ?? 0) * least
    let candidates = Self.candidates(busiest)
    let errors = candidates.map { (limit: $0, error: error($0)) }
    guard let best = errors.min(by: { $0.error < $1.error }), best.error < error(nil) * Self.remainingError
    else {
      self.notes.append(
        "latency rises with load (\(Plot.number(least * 1e3)) ms to \(Plot.number(most * 1e3)) ms), and no limit of concurrency "
          + "explains it: none is assumed"
      )
      return
    }
    self.limit = best.limit
    self.quiet = quiet
    for part in trace.timeline.parts { self.all.add(part.latencies) }
    self.notes.append(
      "latency rises with load (\(Plot.number(least * 1e3)) ms to \(Plot.number(most * 1e3)) ms), as with \(best.limit) requests at a "
        + "time on each server"
    )
  }

  /// The time of the work behind a recorded time that has the waiting in it.
  ///
  /// - Parameter part: Which part of the recorded times is shorter.
  func serviceTime(_ time: Duration, at part: Double) -> Duration {
    guard self.limit != nil else { return time }
    // The longest times are few in quiet seconds: the waits are taken where there are more.
    let part = min(part, 0.9)
    guard let quiet = self.quiet.quantile(part), let all = self.all.quantile(part), all > quiet else {
      return time
    }
    return max(time - .seconds(all - quiet), time.scaled(by: quiet / all))
  }

  /// The latencies of the levels that are as fast as the one with the least load.
  private static func quiet(_ levels: [Level]) -> CoarseHistogram {
    var sum = levels[0].latencies
    let bound = (sum.mean ?? 0) * 1.05
    for level in levels.dropFirst() {
      guard let mean = level.latencies.mean, mean <= bound else { break }
      sum.add(level.latencies)
    }
    return sum
  }

  /// Nil if there are too few seconds or calls.
  private static func levels(_ timeline: Timeline, servers: Int) -> [Level]? {
    // The first and the last second are seldom whole.
    let seconds = Array(timeline.parts.dropFirst().dropLast())
    // A single second has more calls by chance alone, and its calls do not wait as long as if there were always so many.
    let width = max(self.windowSeconds / timeline.length, 1)
    var parts: [Timeline.Part] = []
    for start in stride(from: 0, through: seconds.count - width, by: width) {
      var window = Timeline.Part()
      for part in seconds[start..<start + width] { window.add(part) }
      if window.calls > 0 { parts.append(window) }
    }
    guard parts.count >= self.levelCount else { return nil }
    parts.sort { $0.calls < $1.calls }
    var levels: [Level] = []
    for number in 0..<self.levelCount {
      let group = parts[number * parts.count / self.levelCount..<(number + 1) * parts.count / self.levelCount]
      var latencies = CoarseHistogram()
      for part in group { latencies.add(part.latencies) }
      let calls = group.reduce(0) { $0 + $1.calls }
      let seconds = Double(group.count * width * timeline.length * servers)
      guard latencies.count > 0 else { continue }
      levels.append(Level(rate: Double(calls) / seconds, latencies: latencies))
    }
    // Enough calls in the quiet and in the busy times to compare them.
    while let first = levels.first, first.latencies.count < self.fewest, levels.count > 1 {
      var merged = levels[1]
      merged.latencies.add(first.latencies)
      merged.rate = (merged.rate + first.rate) / 2
      levels.replaceSubrange(0...1, with: [merged])
    }
    return levels.count >= 3 ? levels : nil
  }

  /// Limits near the number of requests that are worked on at the highest load, from fewer to many more.
  private static func candidates(_ busiest: Double) -> [Int] {
    var candidates: [Int] = []
    var value = max((busiest * 0.8).rounded(), 1)
    while value <= max(busiest * 4, 8), candidates.count < 40 {
      candidates.append(Int(value))
      value = max(value + 1, (value * 1.1).rounded())
    }
    return candidates
  }

  /// The latencies of a server that works on `limit` requests at a time: calls begin at random times, and go to the servers in turn.
  private static func queue(_ rate: Double, _ work: CoarseHistogram, _ limit: Int, _ servers: Int)
    -> CoarseHistogram
  {
    var result = CoarseHistogram()
    guard rate > 0 else { return work }
    var random = SeededRandom(seed: 1)
    let table = (0...200).map { work.quantile(Double($0) / 200) ?? 0 }
    // When each place gets free.
    var places = Array(repeating: 0.0, count: limit)
    var now = 0.0
    for number in 0..<self.arrivals {
      // With many servers, the gaps are all about the same.
      let turns = min(servers, 50)
      for _ in 0..<turns { now += -(1 - random.fraction()).logarithm / rate / Double(turns) }
      let place = random.fraction() * 200
      let index = min(Int(place), 199)
      let time = table[index] + (table[index + 1] - table[index]) * (place - Double(index))
      var free = 0
      for candidate in places.indices where places[candidate] < places[free] { free = candidate }
      let end = max(now, places[free]) + time
      places[free] = end
      // The queue is empty at first.
      if number >= self.arrivals / 10 { result.add(.seconds(min(end - now, 1e6))) }
    }
    return result
  }
}
