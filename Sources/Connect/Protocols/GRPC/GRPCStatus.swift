internal import NIOCore

/// How a call of gRPC or gRPC-Web ended, as trailers say.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses>
struct GRPCStatus {
  /// Nil for a call that succeeded.
  let error: ConnectError?

  /// Nil if `fields` has no `grpc-status`.
  ///
  /// A value that is no code means `unknown`. `grpc-status-details-bin` has the same status in full, with details;
  /// its code and message are preferred, as in grpc-go. If it does not decode it is left out: the code that
  /// the server gave is worth more than the news that its details are broken.
  init?(_ fields: Headers) {
    guard let text = fields.first(lowercased: "grpc-status") else { return nil }
    let code = Self.code(text)
    guard code != .ok else {
      self.error = nil
      return
    }
    var error = ConnectError(
      code: code ?? .unknown,
      message: fields.first(lowercased: "grpc-message").map(PercentEncoding.decode)
    )
    if code == nil, error.message == nil { error.message = "response has unknown grpc-status '\(text)'" }
    if let details = fields.first(lowercased: "grpc-status-details-bin"), let status = Self.details(details) {
      if let code = Code(rawValue: status.code), code != .ok { error.code = code }
      if !status.message.isEmpty { error.message = status.message }
      error.details = status.details
    }
    self.error = error
  }

  /// Whether `name` (in lower case) is one of the fields that make the status, and no metadata.
  static func isStatusField(_ name: String) -> Bool {
    guard name.hasPrefix("grpc-") else { return false }
    return name == "grpc-status" || name == "grpc-message" || name == "grpc-status-details-bin"
  }

  /// Nil if `text` is not the number of a code.
  private static func code(_ text: String) -> Code? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else {
      return nil
    }
    return Int(text).flatMap(Code.init(rawValue:))
  }

  private static func details(_ text: String) -> GRPCStatusMessage? {
    // Fields of the same name may have been joined; the first is the one that counts.
    let first = text.prefix { $0 != "," }
    return Base64.decode(first).flatMap(GRPCStatusMessage.init)
  }
}
