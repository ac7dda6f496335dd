/// One child of a balancer with children, as snapshots show it.
public struct BalancerPart: Sendable, Hashable {
  /// The child's name: of a priority, a target or a zone.
  public var name: String
  /// gRPC's name of the child's policy.
  public var policy: String
  /// The child's state; `idle` if it was not needed yet.
  public var state: ConnectivityState
  /// How many endpoints belong to the child.
  public var endpoints: Int
  /// How many of them can take calls.
  public var ready: Int
  /// The child's share of the parent's calls, from 0 to 1.
  public var share: Double
  /// The children of the child.
  public var parts: [BalancerPart]

  /// A part as given.
  public init(
    name: String,
    policy: String,
    state: ConnectivityState,
    endpoints: Int,
    ready: Int,
    share: Double,
    parts: [BalancerPart] = []
  ) {
    self.name = name
    self.policy = policy
    self.state = state
    self.endpoints = endpoints
    self.ready = ready
    self.share = share
    self.parts = parts
  }
}

extension BalancerPart: CustomStringConvertible {
  /// A line for the part, and one for each part of it, further to the right.
  public var description: String { self.lines(indent: "").joined(separator: "\n") }

  func lines(indent: String) -> [String] {
    let tenths = Int((self.share * 1_000).rounded())
    let percent = tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    let line =
      "\(indent)\(self.name): \(self.state), \(self.policy), \(self.ready) of \(self.endpoints) endpoints ready, "
      + "\(percent) % of the calls"
    return [line] + self.parts.flatMap { $0.lines(indent: indent + "  ") }
  }
}
