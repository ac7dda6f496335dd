internal import Connect
public import ConnectChannels
internal import Foundation

/// How long something takes, at random.
public struct Latency: Sendable, Hashable {
  private enum Kind: Sendable, Hashable {
    case constant(Duration)
    case uniform(Duration, Duration)
    case exponential(mean: Duration)
    case logNormal(mu: Double, sigma: Double)
    case empirical([Duration])
  }

  private let kind: Kind

  /// Always the same.
  public static func constant(_ duration: Duration) -> Latency {
    Latency(kind: .constant(max(duration.clamped, .zero)))
  }

  /// Nothing.
  public static var none: Latency { .constant(.zero) }

  /// Evenly distributed between two times.
  public static func uniform(_ range: ClosedRange<Duration>) -> Latency {
    Latency(kind: .uniform(max(range.lowerBound.clamped, .zero), max(range.upperBound.clamped, .zero)))
  }

  /// As the time between independent events.
  public static func exponential(mean: Duration) -> Latency {
    Latency(kind: .exponential(mean: max(mean.clamped, .zero)))
  }

  /// As most servers are: half of the calls take less than the median, and a few much more.
  ///
  /// - Parameters:
  ///   - median: At least 1 microsecond.
  ///   - p99: What 99 of 100 calls do not exceed; at least the median.
  public static func logNormal(median: Duration, p99: Duration) -> Latency {
    let median = max(median.clamped, .microseconds(1))
    let ratio = max(p99.clamped, median).seconds / median.seconds
    // One in a hundred values of a normal distribution is 2.326 standard deviations or more above the mean.
    return Latency(kind: .logNormal(mu: log(median.seconds), sigma: log(ratio) / 2.326_347_874_040_841))
  }

  /// As recorded: between neighbouring quantiles, all times are as likely as each other.
  ///
  /// - Parameter quantiles: Times that parts of equal size lie between: the least, the largest, and those between, in order. At
  ///   most 1,000 count: of more, some are left out. One is a constant, and none is ``none``.
  public static func empirical(_ quantiles: [Duration]) -> Latency {
    var times = quantiles.map { max($0.clamped, .zero) }.sorted()
    if times.count > self.maximumQuantiles {
      let last = times.count - 1
      times = (0..<self.maximumQuantiles).map { times[$0 * last / (self.maximumQuantiles - 1)] }
    }
    guard let first = times.first else { return .none }
    return times.count == 1 ? .constant(first) : Latency(kind: .empirical(times))
  }

  /// How many quantiles an empirical distribution has at most.
  static let maximumQuantiles = 1_000

  /// A random time. Less than 100 years.
  public func sample(_ random: inout SeededRandom) -> Duration {
    switch self.kind {
    case .constant(let duration): return duration
    case .uniform(let least, let most):
      return least + (most - least).scaled(by: random.fraction())
    case .exponential(let mean):
      return mean.scaled(by: -log(1 - random.fraction()))
    case .logNormal(let mu, let sigma):
      // The Box-Muller transform.
      let radius = sqrt(-2 * log(1 - random.fraction()))
      let normal = radius * cos(2 * .pi * random.fraction())
      return .seconds(min(exp(mu + sigma * normal), 3e9))
    case .empirical(let times):
      let place = random.fraction() * Double(times.count - 1)
      let index = min(Int(place), times.count - 2)
      return times[index] + (times[index + 1] - times[index]).scaled(by: place - Double(index))
    }
  }
}

extension Duration {
  var seconds: Double {
    let (seconds, attoseconds) = self.components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}
