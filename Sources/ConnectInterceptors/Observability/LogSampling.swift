internal import Synchronization

/// Which of many equal lines are logged: in each interval the first ``first`` lines, then every ``thereafter``-th
/// line. The first line that is logged after a gap says in `suppressed` how many lines were left out.
///
/// Counted apart for starts, messages, successes and failures of calls.
public struct LogSampling: Sendable, Hashable {
  /// How many lines are logged in each interval before any is left out. Less than zero counts as zero.
  public var first: Int
  /// After the first lines every line with a multiple of this number is logged; 0 or less for none.
  public var thereafter: Int
  /// How long an interval is: 1 second by default.
  public var interval: Duration

  /// Sampling that leaves out all lines of an interval but the first, unless `thereafter` says more.
  public init(first: Int, thereafter: Int = 0, interval: Duration = .seconds(1)) {
    self.first = first
    self.thereafter = thereafter
    self.interval = interval
  }
}

/// The counts of a ``LogSampling``, for one kind of line.
struct LogSampler: Sendable {
  private var intervalStart: Duration?
  private var count = 0
  private var suppressedCount = 0

  /// Counts a line.
  ///
  /// - Returns: Nil if the line is to be left out, else how many lines before it were left out.
  mutating func take(_ sampling: LogSampling, at now: Duration) -> Int? {
    if let start = self.intervalStart, now - start < sampling.interval {
      self.count += 1
    } else {
      self.intervalStart = now
      self.count = 1
    }
    let excess = self.count - max(sampling.first, 0)
    guard excess <= 0 || (sampling.thereafter > 0 && excess % sampling.thereafter == 0) else {
      self.suppressedCount += 1
      return nil
    }
    defer { self.suppressedCount = 0 }
    return self.suppressedCount
  }
}
