import Connect

/// Where a service is, and which of its methods is meant.
struct ServiceAddress: Equatable {
  /// `https://host:port/base`, as ``ProtocolClientConfig/host`` takes it.
  var host: String
  /// `/package.Service/Method`; nil for the service as a whole.
  var path: String?

  /// - Parameter text: `https://host:port`, `http://host:port/base` or `unix:/path`.
  init(service text: String) throws {
    try Self.check(text)
    self.host = text.hasSuffix("/") ? String(text.dropLast()) : text
    _ = try Failure.local { try Origin.parse(host: self.host) }
  }

  /// - Parameter text: As for a service, followed by `/package.Service/Method`.
  init(method text: String) throws {
    try Self.check(text)
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let advice = "say https://host:port/package.Service/Method"
    guard parts.count > 2, let method = parts.last, !method.isEmpty else {
      throw Failure.usage("\(text) names no method; \(advice)")
    }
    let service = parts[parts.count - 2]
    let host = parts.dropLast(2).joined(separator: "/")
    guard !service.isEmpty, !service.contains(":"), !host.hasSuffix(":/"), !host.hasSuffix(":") else {
      throw Failure.usage("\(text) names no method; \(advice)")
    }
    self.host = host
    _ = try Failure.local { try Origin.parse(host: host) }
    self.path = "/\(service)/\(method)"
  }

  private static func check(_ text: String) throws {
    let schemes = ["http://", "https://", "unix:"]
    if schemes.contains(where: text.hasPrefix) {
      let port = text.hasPrefix("unix:") ? 1 : ServerName(host: text).port
      guard (1...65_535).contains(port) else { throw Failure.usage("\(text): there is no port \(port)") }
      return
    }
    throw Failure.usage(
      "\(text) does not say how to connect; begin it with https:// or http://, or with unix:"
    )
  }
}
