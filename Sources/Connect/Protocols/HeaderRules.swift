internal import NIOCore

/// What a request must satisfy before any of it is sent. No transport below checks it again.
///
/// Names are tokens, and values have no control characters but the tab (RFC 9110, sections 5.1 and 5.5). Values have no
/// spaces at either end, which HTTP/2 forbids (RFC 9113, section 8.2.1) and HTTP/1.1 would silently drop. Bytes from
/// 0x80 on, for UTF-8, are allowed. If the name ends with `-bin`, the value is base64: servers fail the call otherwise, and
/// with grpcio such a field disturbs other calls of the connection. Fields that steer the connection (RFC 9113, section
/// 8.2.2) or belong to the wire protocol are refused.
package enum HeaderRules {
  /// The only field with a name reserved by gRPC that interceptors may set: retry interceptors announce the number of
  /// earlier attempts in it.
  private static let previousAttempts = "grpc-previous-rpc-attempts"

  /// Checks everything in `request` that a user or an interceptor may have set.
  ///
  /// - Parameter contentType: A content-type that has been checked before; nil for none.
  /// - Throws: ``ConnectError`` with `invalid_argument`, which names what is wrong.
  static func check(
    _ request: RequestHead,
    for wireProtocol: any WireProtocol,
    knowing contentType: String? = nil
  ) throws(ConnectError) {
    try self.check(path: request.url.path, query: request.url.query)
    if let authority = request.authority { _ = try Authority(ofCall: authority) }
    if request.contentType != contentType { try self.check(contentType: request.contentType) }
    try self.check(request.headers, trailers: request.trailers, for: wireProtocol)
  }

  static func check(
    _ headers: Headers,
    trailers: Headers,
    for wireProtocol: any WireProtocol
  ) throws(ConnectError) {
    for field in headers { try self.check(field, as: "header", for: wireProtocol) }
    for field in trailers { try self.check(field, as: "trailer", for: wireProtocol) }
  }

  /// Checks headers that are added to requests, whatever their protocol is.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument`, which names what is wrong.
  package static func check(added headers: Headers) throws(ConnectError) {
    let protocols: [any WireProtocol] = [
      GRPCProtocol(), GRPCWebProtocol(isText: true), ConnectProtocol(),
    ]
    for field in headers {
      for wireProtocol in protocols { try self.check(field, as: "header", for: wireProtocol) }
      // A request has a user-agent of its own, and retries write their number.
      if field.name == "user-agent" || field.name == Self.previousAttempts {
        throw self.error("header '\(field.name)' is the call's and cannot be added; use another name")
      }
    }
  }

  static func check(contentType: String) throws(ConnectError) {
    guard !contentType.isEmpty else { throw self.error("the content-type is empty") }
    if let problem = self.problem(inValue: contentType) { throw self.error("the content-type \(problem)") }
  }

  /// The path begins with `/`; both consist of visible ASCII, without `#`.
  static func check(path: String, query: String?) throws(ConnectError) {
    guard path.utf8.first == UInt8(ascii: "/") else {
      throw self.error("the path '\(self.printable(path))' does not begin with '/'")
    }
    guard self.isTarget(path) else {
      throw self.error("the path '\(self.printable(path))' has a character that must not be in a URL")
    }
    if let query, !self.isTarget(query) {
      throw self.error("the query '\(self.printable(query))' has a character that must not be in a URL")
    }
  }

  private static func check(
    _ field: Headers.Field,
    as kind: StaticString,
    for wireProtocol: any WireProtocol
  ) throws(ConnectError) {
    if let problem = self.problem(inName: field.name) {
      throw self.error("\(kind) name '\(self.printable(field.name))' \(problem)")
    }
    if self.isConnectionSpecific(field.name) {
      let advice = field.name == "host" ? "; set the authority of the call's options" : ""
      throw self.error("\(kind) '\(field.name)' belongs to the HTTP connection and cannot be set\(advice)")
    }
    if wireProtocol.owns(headerName: field.name), field.name != Self.previousAttempts {
      throw self.error("\(kind) '\(field.name)' belongs to the \(wireProtocol.name) protocol")
    }
    if let problem = self.problem(inValue: field.value) {
      throw self.error("the value of \(kind) '\(field.name)' \(problem)")
    }
    if FieldName.isBinary(field.name), !Base64.isList(field.value) {
      throw self.error(
        "the value of \(kind) '\(field.name)' is no base64, which values of names that end with -bin are"
      )
    }
  }

  private static func problem(inName name: String) -> StaticString? {
    guard let first = name.utf8.first else { return "is empty" }
    if first == UInt8(ascii: ":") { return "is a pseudo-header" }
    return FieldName.isToken(name) ? nil : "has a character that must not be in a field name"
  }

  private static func problem(inValue value: String) -> StaticString? {
    var value = value
    return value.withUTF8 { bytes in
      guard let first = bytes.first, let last = bytes.last else { return nil }
      if FieldSpace.contains(first) { return "begins with a space" }
      let hasControl = bytes.hasByte {
        ByteTest($0 < 0x20) & ByteTest($0 != UInt8(ascii: "\t")) | ByteTest($0 == 0x7f)
      }
      if hasControl { return "has a control character" }
      return FieldSpace.contains(last) ? "ends with a space" : nil
    }
  }

  private static func isConnectionSpecific(_ name: String) -> Bool {
    // By length first: this runs for each header of each call.
    switch name.utf8.count {
    case 2: name == "te"
    case 4: name == "host"
    case 7: name == "trailer" || name == "upgrade"
    case 10: name == "connection" || name == "keep-alive"
    case 14: name == "content-length"
    case 16: name == "proxy-connection"
    case 17: name == "transfer-encoding"
    default: false
    }
  }

  private static func isTarget(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { utf8 in
      !utf8.hasByte { ByteTest($0 <= 0x20) | ByteTest($0 >= 0x7f) | ByteTest($0 == UInt8(ascii: "#")) }
    }
  }

  private static func error(_ message: String) -> ConnectError {
    ConnectError(code: .invalidArgument, message: message)
  }

  /// `text` for an error message: short, and with nothing that would break a log line.
  private static func printable(_ text: String) -> String {
    String(
      text.unicodeScalars.prefix(100).reduce(into: "") { result, scalar in
        result.append(scalar.value < 0x20 || scalar.value == 0x7f ? "?" : Character(scalar))
      }
    )
  }
}
