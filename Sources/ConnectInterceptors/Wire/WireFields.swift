internal import Connect
internal import NIOCore

/// What a request must satisfy after interceptors have changed it: transports do not check it again.
enum WireFields {
  /// - Parameter original: The request as the call made it, which is fine.
  /// - Returns: Why `request` must not be sent.
  static func problem(in request: HTTPStreamRequest, insteadOf original: HTTPStreamRequest) -> ConnectError? {
    if request.method == .get, request.completeBody?.readableBytes != 0 {
      return self.error("a GET has no body")
    }
    if request.target != original.target, !self.isTarget(request.target) {
      return self.error("the target does not begin with '/', or has a character that must not be in it")
    }
    if let authority = request.authority, request.destination !== original.destination {
      do throws(ConnectError) {
        _ = try Authority(ofCall: authority)
      } catch {
        return self.error(error.message ?? "the call's authority is no host")
      }
    }
    if request.headers.elementsEqual(original.headers) { return nil }
    return self.problem(in: request.headers, "header")
  }

  /// - Returns: Why a request must not be sent with `trailers`.
  static func problem(inTrailers trailers: Headers) -> ConnectError? {
    self.problem(in: trailers, "trailer")
  }

  private static func problem(in fields: Headers, _ kind: String) -> ConnectError? {
    for field in fields {
      // The call itself sends `te`.
      if self.ofConnection.contains(field.name)
        || field.name == "te" && (kind == "trailer" || field.value != "trailers")
      {
        return self.error("\(kind) '\(field.name)' belongs to the HTTP connection")
      }
      if !self.isToken(field.name) {
        return self.error("a \(kind) name has a character that must not be in it, or is empty")
      }
      if !self.isValue(field.value) {
        return self.error(
          "the value of \(kind) '\(field.name)' has a control character, or a space at one of its ends"
        )
      }
    }
    return nil
  }

  /// RFC 9113, section 8.2.2, and what transports set.
  private static let ofConnection: Set<String> = [
    "connection", "content-length", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]

  /// RFC 9110, section 5.6.2.
  private static func isToken(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  private static func isValue(_ value: String) -> Bool {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    guard let first = value.utf8.first, let last = value.utf8.last else { return true }
    return !isSpace(first) && !isSpace(last)
      && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }
  }

  private static func isTarget(_ target: String) -> Bool {
    target.utf8.first == UInt8(ascii: "/")
      && target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") }
  }

  private static func error(_ problem: String) -> ConnectError {
    ConnectError(
      code: .internalError,
      message: "wire interceptors have made a request that must not be sent: \(problem)"
    )
  }
}
