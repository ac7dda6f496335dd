/// When calls begin, and how many there are.
struct LoadPlan: Equatable {
  enum Kind: Equatable {
    /// So many calls a second, whether the server keeps up or not.
    case open(rate: Double)
    /// So many calls at any time: each begins when another has ended.
    case closed(callers: Int)
  }

  var kind: Kind
  var duration: Duration?
  var count: Int?
  /// How long it takes to come from nothing to the whole load.
  var ramp = Duration.zero

  /// How many calls of an open load have begun by a time, counted from the start. The rate grows evenly while it ramps up.
  func begun(by time: Duration, rate: Double) -> Int {
    let ramp = self.ramp / .seconds(1)
    let seconds = min(time, self.duration ?? time) / .seconds(1)
    guard seconds > 0 else { return 0 }
    let calls =
      seconds < ramp
      ? rate * seconds * seconds / (2 * ramp)
      : rate * (seconds - ramp / 2)
    return min(Int(calls), self.count ?? .max)
  }

  /// When a call of an open load begins, from the start; the first one has number 0.
  func start(of number: Int, rate: Double) -> Duration {
    let ramp = self.ramp / .seconds(1)
    let calls = Double(number + 1)
    let duringRamp = rate * ramp / 2
    let seconds = calls < duringRamp ? (2 * ramp * calls / rate).squareRoot() : calls / rate + ramp / 2
    return .nanoseconds(Int64(seconds * 1e9))
  }

  /// When a caller of a closed load begins, from the start.
  func start(ofCaller number: Int, of callers: Int) -> Duration {
    self.ramp * number / max(callers, 1)
  }

  /// Whether no call begins any more.
  func isOver(at time: Duration, begun: Int) -> Bool {
    if let duration = self.duration, time >= duration { return true }
    if let count = self.count, begun >= count { return true }
    return false
  }
}
