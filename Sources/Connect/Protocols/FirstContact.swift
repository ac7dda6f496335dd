extension ConnectError {
  /// The same error with a longer message. It names the request, quotes the response, and gives advice on mistakes that
  /// are likely in the first contact with a server.
  ///
  /// Queries are left out: they may hold a message, or a secret.
  ///
  /// - Parameters:
  ///   - method: The HTTP method.
  ///   - head: The response's head, if one has arrived.
  func naming(
    _ request: RequestURL,
    method: HTTPStreamRequest.Method,
    answeredWith head: HTTPResponseHead?,
    over wire: any WireProtocol
  ) -> ConnectError {
    guard let unnamed = self.unnamed, let message = self.message else { return self }
    var facts = ["\(method.rawValue) \(RequestURL(origin: request.origin, path: request.path))"]
    var advice: String?
    switch unnamed {
    case .connection, .ended, .version:
      facts = ["\(method.rawValue) \(request.path)"]
    case .reset:
      if !wire.requiresHTTP2 {
        advice =
          "servers that speak only gRPC do this to other protocols; for these, set networkProtocol to .grpc"
      }
    case .trailers:
      advice = "proxies that drop trailers do this; for these, set networkProtocol to .grpcWeb"
    case .response(let text):
      // 304 is a regular answer to a caller that has the response, and needs no text.
      guard let head, head.status != 304 else { return self }
      facts += FirstContact.facts(of: head, text: text)
      advice = FirstContact.advice(for: head, text: text, from: request.origin, over: wire)
    }
    var error = self
    error.unnamed = nil
    error.message = "\(message)\(advice.map { "; \($0)" } ?? "") (\(facts.joined(separator: ", ")))"
    return error
  }
}

extension HTTPResponseHead {
  /// Whether the response says that the server takes no requests of this protocol. Then the server has not processed
  /// the request. The statuses mean that it refuses the content type, or the version of HTTP (RFC 9110, sections
  /// 15.5.16, 15.5.22 and 15.6.6). If the response itself is in this protocol, the server refuses something else, such
  /// as the codec.
  func refuses(_ wire: any WireProtocol) -> Bool {
    switch self.status {
    case 415, 426, 505: FirstContact.networkProtocol(of: self.mediaType)?.wire.name != wire.name
    default: false
    }
  }

  /// Whether the response comes from a server that speaks this protocol.
  ///
  /// - Parameter contentType: The content type of the request.
  func answers(_ contentType: String, over wire: any WireProtocol) -> Bool {
    let type = self.mediaType
    if type == MediaType.essence(contentType) { return true }
    if let spoken = FirstContact.networkProtocol(of: type) { return spoken.wire.name == wire.name }
    // The errors of unary calls.
    return wire is ConnectProtocol && self.status != 200 && type == "application/json"
  }

  /// The content type without parameters; empty if there is none.
  fileprivate var mediaType: String {
    self.headers.first(lowercased: "content-type").map(MediaType.essence) ?? ""
  }
}

/// Describes a response that does not belong to the protocol that the client speaks.
private enum FirstContact {
  /// Facts in the response that help to find out where it comes from.
  static func facts(of head: HTTPResponseHead, text: String) -> [String] {
    var facts: [String] = []
    func add(_ name: String, _ value: Substring?) {
      if let value { facts.append("\(name) '\(ResponseText.line(value))'") }
    }
    let headers = head.headers
    // If the content-type is the problem, the message has it already.
    if head.status != 200 {
      let contentType = headers.first(lowercased: "content-type")
      if contentType == nil { facts.append("no content-type") }
      add("content-type", contentType?[...])
    }
    add("location", headers.first(lowercased: "location")?.prefix { $0 != "?" })
    add("accept-post", headers.first(lowercased: "accept-post")?[...])
    add("grpc-message", headers.first(lowercased: "grpc-message").map { PercentEncoding.decode($0)[...] })
    if !text.isEmpty { facts.append("it says: '\(text)'") }
    return facts
  }

  static func advice(
    for head: HTTPResponseHead,
    text: String,
    from origin: Origin,
    over wire: any WireProtocol
  ) -> String? {
    let type = head.mediaType
    if let spoken = self.networkProtocol(of: type), spoken.wire.name != wire.name {
      return "the server has answered in another protocol: set networkProtocol to \(self.name(of: spoken))"
    }
    switch head.status {
    case 200:
      return type == "text/html" ? "that is a web page: check the host and its base path" : nil
    case 301, 302, 303, 307, 308:
      return "redirects are not followed: change the host to where the service is"
    case 400:
      guard origin.scheme == .http, ResponseText.asksForTLS(text) else { return nil }
      return "the server expects TLS on this port: begin the host with https://"
    case 404, 405, 501:
      return "no RPC has this path there: check the host, its base path, and the names of package and service"
    case 415:
      return
        "the server does not take requests of this protocol, or of this codec: check networkProtocol and codec"
    case 426, 505:
      return "the server wants another version of HTTP: see NIOHTTPClient.Configuration.version"
    default:
      return nil
    }
  }

  /// The protocol whose responses have this content-type (without parameters).
  static func networkProtocol(of type: String) -> NetworkProtocol? {
    // The longest first: each is a prefix of the one before.
    if type.hasPrefix(GRPCWebProtocol.textContentType) { return .grpcWebText }
    if type.hasPrefix(GRPCWebProtocol.contentType) { return .grpcWeb }
    if type == GRPCProtocol.contentType || type.hasPrefix("\(GRPCProtocol.contentType)+") { return .grpc }
    if type == "application/proto" || type.hasPrefix(ConnectProtocol.streamContentTypePrefix) {
      return .connect
    }
    return nil
  }

  /// The name of the protocol in source code.
  private static func name(of networkProtocol: NetworkProtocol) -> String {
    switch networkProtocol {
    case .connect: ".connect"
    case .grpc: ".grpc"
    case .grpcWeb: ".grpcWeb"
    default: ".grpcWebText"
    }
  }
}
