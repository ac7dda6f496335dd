import Foundation

/// When calls begin, and how many there are.
struct LoadPlan: Equatable {
  enum Kind: Equatable {
    /// This many calls a second, whether the server keeps up or not.
    case open(rate: Double)
    /// This many calls at any time: each begins when another has ended.
    case closed(callers: Int)
  }

  var kind: Kind
  var duration: Duration?
  var count: Int?
  /// How long the load takes to grow from nothing to all of it.
  var ramp = Duration.zero

  /// How many calls of an open load are due at a time, counted from the start. The rate grows evenly while it ramps up.
  func due(at time: Duration, rate: Double) -> Int {
    min(Int(self.calls(by: time, rate)) + 1, self.total(rate: rate) ?? .max)
  }

  /// How many calls an open load has in all; nil if it does not end.
  func total(rate: Double) -> Int? {
    // Rounding may make a whole number a little larger.
    let duringDuration = self.duration.map { max(Int((self.calls(by: $0, rate) - 1e-6).rounded(.up)), 1) }
    return [duringDuration, self.count].compactMap(\.self).min()
  }

  private func calls(by time: Duration, _ rate: Double) -> Double {
    let ramp = self.ramp / .seconds(1)
    let seconds = max(time / .seconds(1), 0)
    let calls = seconds < ramp ? rate * seconds * seconds / (2 * ramp) : rate * (seconds - ramp / 2)
    return min(calls, 1e15)
  }

  /// When a call of an open load is due, from the start; the first one has number 0.
  func start(of number: Int, rate: Double) -> Duration {
    let ramp = self.ramp / .seconds(1)
    let calls = Double(number)
    let duringRamp = rate * ramp / 2
    let seconds = calls < duringRamp ? (2 * ramp * calls / rate).squareRoot() : calls / rate + ramp / 2
    return .nanoseconds(Int64(seconds * 1e9))
  }

  /// When a caller of a closed load begins, from the start.
  func start(ofCaller number: Int, of callers: Int) -> Duration {
    self.ramp * number / max(callers, 1)
  }

  /// How far the load is, such as `3 s of 10 s  1200 calls` or `3 s  1200 of 5000 calls`.
  func progress(at time: Duration, ended: Int) -> String {
    let length = self.duration.map { " of \(($0 / .seconds(1)).formatted()) s" } ?? ""
    let total = self.count.map { " of \($0)" } ?? ""
    return "\(Int(time / .seconds(1))) s\(length)  \(ended)\(total) calls"
  }

  /// Whether no call begins any more.
  func isOver(at time: Duration, begun: Int) -> Bool {
    if let duration = self.duration, time >= duration { return true }
    if let count = self.count, begun >= count { return true }
    return false
  }
}
