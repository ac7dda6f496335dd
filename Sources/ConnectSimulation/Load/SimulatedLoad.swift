internal import Connect
internal import ConnectChannels

/// How calls are made in a simulation.
public struct SimulatedLoad: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case open(perSecond: Double)
    case closed(callers: Int, pause: Latency)
    case series([Double], each: Duration)
  }

  let kind: Kind

  /// An open load, as of many users: calls begin at random times, at this average rate in a second, whether earlier calls have
  /// ended or not.
  ///
  /// - Parameter rate: At most a million; zero or less for none.
  public static func open(perSecond rate: Double) -> SimulatedLoad {
    SimulatedLoad(kind: .open(perSecond: min(max(rate.isNaN ? 0 : rate, 0), 1_000_000)))
  }

  /// An open load whose rate changes, as it was recorded: calls begin at random times, at a rate for each part of the time.
  ///
  /// - Parameters:
  ///   - rates: Average rates in a second, each as in ``open(perSecond:)``. After the last one they begin again.
  ///   - length: For how long each rate holds; at least 1 millisecond.
  public static func open(perSecond rates: [Double], each length: Duration) -> SimulatedLoad {
    let rates = rates.map { min(max($0.isNaN ? 0 : $0, 0), 1_000_000) }
    return SimulatedLoad(kind: .series(rates, each: max(length.clamped, .milliseconds(1))))
  }

  /// A closed load, as of workers: each caller makes a call when its last call has ended.
  ///
  /// - Parameters:
  ///   - callers: At least 1.
  ///   - pause: The time between the end of a call and the beginning of the caller's next one; at least 1 millisecond.
  public static func closed(callers: Int, pause: Latency = .none) -> SimulatedLoad {
    SimulatedLoad(kind: .closed(callers: max(callers, 1), pause: pause))
  }
}
