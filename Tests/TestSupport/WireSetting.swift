public import Connect

/// How a client connects to a server: the parameters of a test.
public struct WireSetting: Sendable, CustomStringConvertible {
  public var networkProtocol: NetworkProtocol
  /// Nil if the transport has no choice of versions.
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
