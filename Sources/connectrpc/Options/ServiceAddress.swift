import Connect
import Foundation

/// Where a service is, and which of its methods is meant.
struct ServiceAddress: Equatable {
  /// `https://host:port/base`, as ``ProtocolClientConfig/host`` takes it.
  var host: String
  /// `/package.Service/Method`; nil for the service as a whole.
  var path: String?

  /// - Parameter text: `https://host:port`, `http://host:port/base`, `unix:/path`, `unix-abstract:name` or
  ///   `vsock:cid:port`.
  init(service text: String) throws {
    let text = text.withoutBlanks
    try Self.check(text)
    self.host = text.hasSuffix("/") ? String(text.dropLast()) : text
    _ = try Failure.local { try Origin.parse(host: self.host) }
  }

  /// - Parameter text: As for a service, followed by `/package.Service/Method`.
  init(method text: String) throws {
    let text = text.withoutBlanks
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

  /// - Parameter text: As for a service, which `/package.Service/Method` may follow. A base path that looks the same needs a
  ///   slash at its end; the path of a socket is one if there is such a file.
  init(serviceOrMethod text: String) throws {
    let parts = text.withoutBlanks.split(separator: "/", omittingEmptySubsequences: false)
    let isSocket =
      text.hasPrefix("unix:") && FileManager.default.fileExists(atPath: String(text.dropFirst(5)))
    // In front of the path are the scheme and the host, or the scheme alone.
    if !isSocket, parts.count > (text.socketScheme != nil ? 2 : 4), let method = parts.last,
      Self.isIdentifier(method), Self.isServiceName(parts[parts.count - 2])
    {
      try self.init(method: text)
    } else {
      try self.init(service: text)
    }
  }

  /// Whether it is a name with a package.
  private static func isServiceName(_ text: Substring) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count > 1 && parts.allSatisfy(self.isIdentifier)
  }

  private static func isIdentifier(_ text: Substring) -> Bool {
    guard let first = text.first, first.isASCII, first.isLetter || first == "_" else { return false }
    return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
  }

  private static func check(_ text: String) throws {
    if text.socketScheme != nil { return }
    if ["http://", "https://"].contains(where: text.hasPrefix) {
      let port = ServerName(host: text).port
      guard (1...65_535).contains(port) else { throw Failure.usage("\(text): there is no port \(port)") }
      return
    }
    throw Failure.usage(
      "\(text) does not say how to connect; begin it with https:// or http://, or with unix:, unix-abstract: or vsock:"
    )
  }
}

extension String {
  /// The scheme of a host that is a socket, but not one of TCP; nil for other hosts.
  var socketScheme: String? { ["unix:", "unix-abstract:", "vsock:"].first(where: self.hasPrefix) }
}
