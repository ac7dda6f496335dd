/// Limits on the resources of one decode, whatever its input.
public struct DecodingLimits: Sendable, Hashable {
  private static let leastMemory = 64 * 1024 * 1024
  private static let memoryPerByte = 16

  /// The maximum number of nested messages, including the outermost.
  public var maximumDepth: Int
  /// The maximum memory of the decoded message, in bytes. A few bytes of input can become a struct of several hundred
  /// bytes. So this should be larger than the largest message on the wire.
  ///
  /// nil is 64 MiB, or 16 bytes for each byte of input if that is more. So it follows the client's limit
  /// `ProtocolClientConfig.Limits.maximumReceivedMessageSize`, which is checked before a message is decoded.
  public var maximumMemory: Int?

  /// Arguments that are left out have the values of ``defaults``.
  public init(maximumDepth: Int = 100, maximumMemory: Int? = nil) {
    self.maximumDepth = maximumDepth
    self.maximumMemory = maximumMemory
  }

  /// 100 levels, and memory in proportion to the input's size.
  public static let defaults = DecodingLimits()

  /// The memory limit for an input of `count` bytes.
  func memory(forBytes count: Int) -> Int {
    max(0, self.maximumMemory ?? max(Self.leastMemory, Self.memoryPerByte * count))
  }
}
