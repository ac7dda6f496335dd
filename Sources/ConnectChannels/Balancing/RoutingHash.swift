public import Connect

/// The hash of a call where the policy is ring hash with the key ``BalancingPolicy/RingHash/Key/call``: calls with
/// the same hash go to the same endpoint. Nil, the default, for a random endpoint.
///
/// ```swift
/// var options = CallOptions()
/// options.context[RoutingHash.self] = userID
/// ```
public enum RoutingHash: CallContextKey {
  /// Nil: the call goes to a random endpoint.
  public static var defaultValue: UInt64? { nil }
}
