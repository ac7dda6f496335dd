internal import ConnectChannels

/// How calls are made in a simulation.
public struct SimulatedLoad: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case open(perSecond: Double)
    case closed(callers: Int, pause: Latency)
  }

  let kind: Kind

  /// Calls begin whatever becomes of the ones before, as those of many users do: so many in a second on average, at random
  /// times.
  ///
  /// - Parameter rate: At most a million; zero or less for none.
  public static func open(perSecond rate: Double) -> SimulatedLoad {
    SimulatedLoad(kind: .open(perSecond: min(max(rate.isNaN ? 0 : rate, 0), 1_000_000)))
  }

  /// So many callers, each of which makes a call when its last one has ended, as workers do.
  ///
  /// - Parameters:
  ///   - callers: At least 1.
  ///   - pause: The time between the end of a call and the beginning of the caller's next one; at least 1 millisecond.
  public static func closed(callers: Int, pause: Latency = .none) -> SimulatedLoad {
    SimulatedLoad(kind: .closed(callers: max(callers, 1), pause: pause))
  }
}
