/// The protocol that a client speaks on the wire.
public struct NetworkProtocol: Sendable {
  let wire: any WireProtocol

  /// The Connect protocol, <https://connectrpc.com/docs/protocol>.
  public static let connect = NetworkProtocol(wire: ConnectProtocol())
}

extension NetworkProtocol: CustomStringConvertible {
  public var description: String { self.wire.name }
}
