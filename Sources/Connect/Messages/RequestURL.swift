/// Where a request goes: the client's host and the method's path. A value that is cheap to make and to copy:
/// nothing is parsed per call.
public struct RequestURL: Sendable, Hashable {
  /// Scheme, host and port.
  public var origin: Origin
  /// Begins with `/`; used on the wire as it is, neither decoded nor encoded.
  public var path: String
  /// Without the `?`; used on the wire as it is.
  public var query: String?

  /// A URL of its parts, which are not checked here.
  public init(origin: Origin, path: String, query: String? = nil) {
    self.origin = origin
    self.path = path
    self.query = query
  }

  /// `http`, `https`, `unix`, `unix-abstract` or `vsock`.
  public var scheme: String { self.origin.scheme.rawValue }
  /// The host's name or address; see ``Origin/host`` for sockets.
  public var host: String { self.origin.host }
  /// The port, 1 to 65,535; see ``Origin/port`` for sockets.
  public var port: Int { self.origin.port }
}

extension RequestURL: CustomStringConvertible {
  public var description: String {
    "\(self.origin)\(self.path)" + (self.query.map { "?\($0)" } ?? "")
  }
}
