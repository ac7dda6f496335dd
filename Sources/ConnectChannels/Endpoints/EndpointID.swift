/// Names an endpoint within a channel. It is never reused for another endpoint.
public struct EndpointID: Hashable, Sendable {
  private let index: UInt32
  /// Distinguishes endpoints that have used the same slot: a later endpoint has a larger number.
  public let generation: UInt32

  /// A name for the endpoint that has the slot now.
  ///
  /// - Parameters:
  ///   - slot: From 0 to 2^32 - 1; a number out of range counts as the nearest.
  ///   - generation: Larger than the generation of the slot's previous endpoint.
  public init(slot: Int, generation: UInt32) {
    self.index = UInt32(clamping: slot)
    self.generation = generation
  }

  /// The index of the endpoint in the channel's tables: small, and reused after the endpoint has left.
  public var slot: Int { Int(self.index) }
}
