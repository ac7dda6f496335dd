extension BalancingPolicy {
  /// How calls find their endpoint on a ring of hashes (gRFC A42, A76).
  public struct RingHash: Sendable, Hashable {
    /// What a call is hashed by. Without it a call goes to a random endpoint.
    public enum Key: Sendable, Hashable {
      /// A request header. The name is in lower case and does not end with `-bin`.
      case header(String)
      /// The hash that the call brings: ``PickContext/hash``.
      case call
    }

    /// No ring is larger: 8 M entries.
    public static let largestRing = 8 * 1024 * 1024

    /// What calls are hashed by. ``Key/call`` by default.
    public var key: Key
    /// How many entries the ring has at least: more fit weights better.
    public let minimumRingSize: Int
    /// How many entries the ring has at most. It should not be less than the number of endpoints.
    ///
    /// The ring grows with the number of endpoints, up to this size and up to four times the minimum. Few keys then
    /// move when an endpoint leaves. Other gRPC clients do not let it grow. If the minimum equals the maximum, the ring
    /// is the same as theirs.
    public let maximumRingSize: Int

    /// A ring as given; what is left out is as in ``defaults``.
    ///
    /// - Parameters:
    ///   - key: See ``key``.
    ///   - minimumRingSize: Brought into the range from 1 to `maximumRingSize`.
    ///   - maximumRingSize: Brought into the range from 1 to ``largestRing``.
    public init(key: Key = .call, minimumRingSize: Int = 1024, maximumRingSize: Int = 4096) {
      self.key = key
      self.maximumRingSize = min(max(maximumRingSize, 1), Self.largestRing)
      self.minimumRingSize = min(max(minimumRingSize, 1), self.maximumRingSize)
    }

    /// The hash of the call, and a ring of 1,024 to 4,096 entries.
    public static var defaults: RingHash { RingHash() }
  }
}
