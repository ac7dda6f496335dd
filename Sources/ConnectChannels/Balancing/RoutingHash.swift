public import Connect

/// What a call is hashed by where the policy is ring hash with the key ``BalancingPolicy/RingHash/Key/call``: calls with the
/// same hash go to the same endpoint. Nil, the default, for a random one.
///
/// ```swift
/// var options = CallOptions()
/// options.context[RoutingHash.self] = userID
/// ```
public enum RoutingHash: CallContextKey {
  public static var defaultValue: UInt64? { nil }
}
