/// The protocol that a client speaks on the wire, or several protocols from which it selects the first that works.
public struct NetworkProtocol: Sendable {
  /// The protocols in the order in which they are tried. Calls of a client with none fail.
  let wires: [any WireProtocol]

  /// The Connect protocol, <https://connectrpc.com/docs/protocol>.
  public static let connect = NetworkProtocol(wires: [ConnectProtocol()])
  /// gRPC, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. Needs HTTP/2 on the whole way to the
  /// server; without TLS, a connection speaks HTTP/2 from the first byte.
  public static let grpc = NetworkProtocol(wires: [GRPCProtocol()])
  /// gRPC-Web, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>, over HTTP of any version.
  public static let grpcWeb = NetworkProtocol(wires: [GRPCWebProtocol(isText: false)])
  /// gRPC-Web with bodies in base64, for proxies that let nothing else pass.
  public static let grpcWebText = NetworkProtocol(wires: [GRPCWebProtocol(isText: true)])

  /// The first of several protocols that gets through to the server. A client remembers it for each origin.
  ///
  /// A call goes on to the next protocol if the server certainly did not process the request. Interceptors do not see
  /// this. Either the server speaks another version of HTTP than the protocol needs, or it refuses the request with
  /// HTTP status 415, 426 or 505. A gRPC response without trailers fails its call, since the server may have processed
  /// it; later calls use the next protocol. No other error says anything about the protocol. A call tries each protocol
  /// at most once, and its error names all that it has tried.
  ///
  /// A stream that has sent more than 64 KiB in several messages is not sent again. The first call may go as POST where later
  /// ones go as GET.
  ///
  /// - Parameter choices: The protocols, the preferred one first. With one choice, the client always speaks this
  ///   protocol. With none, each call fails with `invalid_argument`.
  public static func automatic(_ choices: [NetworkProtocol] = [.grpc, .grpcWeb, .connect]) -> NetworkProtocol
  {
    var wires: [any WireProtocol] = []
    for wire in choices.flatMap(\.wires) where !wires.contains(where: { $0.name == wire.name }) {
      wires.append(wire)
    }
    return NetworkProtocol(wires: wires)
  }

  /// The preferred protocol.
  var wire: any WireProtocol { self.wires.first ?? ConnectProtocol() }

  /// Why a client with this protocol cannot make calls; nil if it can.
  var problem: ConnectError? {
    guard self.wires.isEmpty else { return nil }
    return ConnectError(
      code: .invalidArgument,
      message:
        "networkProtocol is .automatic without choices: name at least one protocol, or use .automatic()"
    )
  }

  private var names: [String] { self.wires.map(\.name) }
}

extension NetworkProtocol: Hashable {
  public static func == (left: Self, right: Self) -> Bool { left.names == right.names }

  public func hash(into hasher: inout Hasher) { hasher.combine(self.names) }
}

extension NetworkProtocol: CustomStringConvertible {
  /// For example `connect`, or `automatic(grpc, grpc-web, connect)`.
  public var description: String {
    self.wires.count == 1 ? self.wire.name : "automatic(\(self.names.joined(separator: ", ")))"
  }
}
