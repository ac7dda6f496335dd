public import Connect

/// How a client speaks to a server: what a test is repeated for.
public struct WireSetting: Sendable, CustomStringConvertible {
  public var networkProtocol: NetworkProtocol
  /// Nil where the transport has no choice.
  public var version: HTTPConnectionInfo.Version?
  public var codec: any Codec
  /// Whether messages are compressed in both directions.
  public var isCompressed: Bool

  public init(
    _ networkProtocol: NetworkProtocol,
    over version: HTTPConnectionInfo.Version? = nil,
    codec: any Codec = ProtoCodec(),
    isCompressed: Bool = false
  ) {
    self.networkProtocol = networkProtocol
    self.version = version
    self.codec = codec
    self.isCompressed = isCompressed
  }

  public var description: String {
    let parts = [
      "\(self.networkProtocol)", self.version?.rawValue, self.codec.name, self.isCompressed ? "gzip" : nil,
    ]
    return parts.compactMap { $0 }.joined(separator: ", ")
  }
}
