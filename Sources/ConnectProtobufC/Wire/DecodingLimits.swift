/// Bounds on what one decode may take, whatever its input says.
public struct DecodingLimits: Sendable, Hashable {
  /// How many messages may be in one another, the outermost counted.
  public var maximumDepth: Int
  /// How many bytes of memory the decoded message may take. A few bytes of input can stand for a struct of some hundred
  /// bytes, so that this is to be larger than the largest message on the wire.
  public var maximumMemory: Int

  public init(maximumDepth: Int = 100, maximumMemory: Int = 64 * 1024 * 1024) {
    self.maximumDepth = maximumDepth
    self.maximumMemory = maximumMemory
  }

  /// 100 levels, 64 MiB.
  public static let defaults = DecodingLimits()
}
