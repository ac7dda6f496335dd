internal import Connect

/// The names of OpenTelemetry's semantic conventions for RPC, version 1.40.0.
///
/// <https://github.com/open-telemetry/semantic-conventions/tree/v1.40.0/docs/rpc>
enum SemanticConventions {
  static let clientCallDuration = "rpc.client.call.duration"
  static let clientCall = MetricDescription(
    name: clientCallDuration,
    kind: .histogram,
    unit: "s",
    labels: [system, method, statusCode, errorType, serverAddress, serverPort],
    summary: "How long a call took for its caller, with all its attempts."
  )

  static let system = "rpc.system.name"
  static let method = "rpc.method"
  static let statusCode = "rpc.response.status_code"
  static let errorType = "error.type"
  static let serverAddress = "server.address"
  static let serverPort = "server.port"
  static let peerAddress = "network.peer.address"
  static let peerPort = "network.peer.port"
  static let protocolName = "network.protocol.name"
  static let protocolVersion = "network.protocol.version"
  static let transport = "network.transport"
  static let httpStatus = "http.response.status_code"
  static let requestBodySize = "http.request.body.size"
  static let responseBodySize = "http.response.body.size"
  static let resendCount = "http.request.resend_count"
  static let requestMetadata = "rpc.request.metadata."
  static let responseMetadata = "rpc.response.metadata."

  /// Stands for values that are left out since there would be too many different ones.
  static let other = "_OTHER"

  /// The method's full name, `package.Service/Method`, in a path that may have a base path in front.
  static func methodName(inPath path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    let service = path[..<slash]
    guard let start = service.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    return String(path[path.utf8.index(after: start)...])
  }
}

/// The protocol family that a client speaks, as `rpc.system.name` has it.
enum RPCSystem: String, Sendable, Hashable {
  case connect = "connectrpc"
  /// gRPC-Web, too: the conventions have no separate name for it.
  case grpc = "grpc"

  /// - Parameter contentType: Of a request.
  init(contentType: String) {
    self = contentType.hasPrefix("application/grpc") ? .grpc : .connect
  }

  /// The value of `rpc.response.status_code`; nil for success over Connect, which has no code for that.
  func statusCode(_ code: Code) -> String? {
    switch self {
    case .connect: code == .ok ? nil : code.name
    case .grpc: code.grpcName
    }
  }
}

extension Origin {
  /// The value of `server.port`; a Unix domain socket has none.
  var serverPort: Int? { self.scheme.isUnixSocket ? nil : self.port }
}

extension HTTPConnectionInfo {
  /// The values of `network.peer.address` and `network.peer.port`.
  var peer: Peer? { self.remoteAddress.map { Peer($0) } }

  /// The value of `network.protocol.version`.
  var protocolVersion: String {
    switch self.version {
    case .http1: "1.1"
    case .http2: "2"
    case .http3: "3"
    }
  }

  /// The value of `network.transport`, for a connection to `origin`.
  func transport(to origin: Origin) -> String {
    if self.version == .http3 { return "quic" }
    return switch origin.scheme {
    case .http, .https: "tcp"
    case .unix, .unixAbstract: "unix"
    // The list has no name for it, and allows others.
    case .vsock: "vsock"
    }
  }
}

extension CallOutcome.Exchange {
  /// The values of `network.peer.address` and `network.peer.port`.
  var peer: Peer? { self.remoteAddress.map { Peer($0) } }
}

/// The values of `network.peer.address` and `network.peer.port`.
struct Peer {
  let address: String
  let port: Int?

  /// - Parameter remoteAddress: `10.1.2.80:443`, `[::1]:443`, or a path.
  init(_ remoteAddress: String) {
    guard !remoteAddress.hasPrefix("/"), let colon = remoteAddress.utf8.lastIndex(of: UInt8(ascii: ":")),
      let port = Int(remoteAddress[remoteAddress.utf8.index(after: colon)...])
    else {
      self.address = remoteAddress
      self.port = nil
      return
    }
    let host = remoteAddress[..<colon]
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    self.address = String(isBracketed ? host.dropFirst().dropLast() : host)
    self.port = port
  }
}
