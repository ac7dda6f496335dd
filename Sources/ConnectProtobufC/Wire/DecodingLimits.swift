/// Bounds on what one decode may take, whatever its input says.
public struct DecodingLimits: Sendable, Hashable {
  private static let leastMemory = 64 * 1024 * 1024
  private static let memoryPerByte = 16

  /// How many messages may be nested, including the outermost.
  public var maximumDepth: Int
  /// How many bytes of memory the decoded message may take. A few bytes of input can stand for a struct of some hundred
  /// bytes, so that this is to be larger than the largest message on the wire.
  ///
  /// nil is 64 MiB, or 16 bytes for each byte of input if that is more. So it follows the limit of the client
  /// (`ProtocolClientConfig.Limits.maximumReceivedMessageSize`), which a message in a call has passed before it is
  /// decoded.
  public var maximumMemory: Int?

  /// Limits as given; what is left out is as in ``defaults``.
  public init(maximumDepth: Int = 100, maximumMemory: Int? = nil) {
    self.maximumDepth = maximumDepth
    self.maximumMemory = maximumMemory
  }

  /// 100 levels, and memory as the input's size allows.
  public static let defaults = DecodingLimits()

  /// How much memory an input of so many bytes may take.
  func memory(forBytes count: Int) -> Int {
    max(0, self.maximumMemory ?? max(Self.leastMemory, Self.memoryPerByte * count))
  }
}
