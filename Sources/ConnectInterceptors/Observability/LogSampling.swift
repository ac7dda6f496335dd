internal import Synchronization

/// Which of many equal lines are logged: in each interval the first so many, then each so manyth. The first line that
/// is logged after others were not says how many in `suppressed`.
///
/// Counted apart for starts, messages, successes and failures of calls.
public struct LogSampling: Sendable, Hashable {
  /// How many lines are logged in each interval before any is left out. Less than zero counts as zero.
  public var first: Int
  /// Each so manyth is logged after that; 0 or less for none.
  public var thereafter: Int
  public var interval: Duration

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
  /// - Returns: nil if it is to be left out, else how many before it were.
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
