/// The protocol that a client speaks on the wire.
public struct NetworkProtocol: Sendable {
  let wire: any WireProtocol

  /// The Connect protocol, <https://connectrpc.com/docs/protocol>.
  public static let connect = NetworkProtocol(wire: ConnectProtocol())
  /// gRPC, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. Needs HTTP/2 on the whole way to the
  /// server; a host without TLS is spoken to in HTTP/2 from the first byte.
  public static let grpc = NetworkProtocol(wire: GRPCProtocol())
  /// gRPC-Web, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>, over HTTP of any version.
  public static let grpcWeb = NetworkProtocol(wire: GRPCWebProtocol(isText: false))
  /// gRPC-Web with bodies in base64, for proxies that let nothing else pass.
  public static let grpcWebText = NetworkProtocol(wire: GRPCWebProtocol(isText: true))
}

extension NetworkProtocol: Hashable {
  public static func == (left: Self, right: Self) -> Bool { left.wire.name == right.wire.name }

  public func hash(into hasher: inout Hasher) { hasher.combine(self.wire.name) }
}

extension NetworkProtocol: CustomStringConvertible {
  public var description: String { self.wire.name }
}
