internal import NIOCore

/// How a call of gRPC or gRPC-Web ended, as trailers say.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses>
struct GRPCStatus {
  /// Nil for a call that succeeded.
  let error: ConnectError?
  /// What was changed in the error's message.
  let text: ReceivedText

  /// Nil if `fields` has no `grpc-status`.
  ///
  /// A value that is no code means `unknown`. `grpc-status-details-bin` has the same status in full, with details; its
  /// code and message are preferred, as in grpc-go. If it does not decode, it is left out: the server's code is worth
  /// more than an error about its details.
  init?(_ fields: Headers) {
    guard let text = fields.first(lowercased: "grpc-status") else { return nil }
    let code = Self.code(text)
    var received = ReceivedText()
    guard code != .ok else {
      self.error = nil
      self.text = received
      return
    }
    var message = fields.first(lowercased: "grpc-message").map(PercentEncoding.decode)
    if code == nil, message == nil { message = "response has unknown grpc-status '\(text)'" }
    var error = ConnectError(code: code ?? .unknown)
    if let details = fields.first(lowercased: "grpc-status-details-bin"), let status = Self.details(details) {
      if let code = Code(rawValue: status.code), code != .ok { error.code = code }
      if !status.message.isEmpty { message = status.message }
      error.details = status.details
    }
    error.message = message.map { received.message($0) }
    self.error = error
    self.text = received
  }

  /// Whether `name` (in lower case) is one of the fields that make the status, and no metadata.
  static func isStatusField(_ name: String) -> Bool {
    guard name.hasPrefix("grpc-") else { return false }
    return name == "grpc-status" || name == "grpc-message" || name == "grpc-status-details-bin"
  }

  /// The fields that are metadata.
  static func metadata(of fields: Headers) -> Headers {
    guard fields.contains(where: { self.isStatusField($0.name) }) else { return fields }
    return Headers(fields.filter { !self.isStatusField($0.name) })
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
    let first = Substring(text.utf8.prefix { $0 != UInt8(ascii: ",") })
    return Base64.decode(FieldSpace.trim(first)).flatMap(GRPCStatusMessage.init)
  }
}

/// The message `google.rpc.Status`, of which we need to read three fields and to keep the details' bytes as they
/// are. <https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto>
struct GRPCStatusMessage {
  private(set) var code = 0
  private(set) var message = ""
  private(set) var details: [ConnectError.Detail] = []

  /// Nil if `bytes` are not protobuf.
  init?(_ bytes: ByteBuffer) {
    var reader = ProtobufReader(bytes)
    while let field = reader.next() {
      switch (field.number, field.value) {
      case (1, .varint(let value)): self.code = Int(Int32(truncatingIfNeeded: value))
      case (2, .bytes(let text)): self.message = String(buffer: text)
      case (3, .bytes(let any)):
        guard let detail = Self.detail(any) else { return nil }
        self.details.append(detail)
      default: break
      }
    }
    guard reader.isAtEnd else { return nil }
  }

  /// A `google.protobuf.Any`.
  private static func detail(_ bytes: ByteBuffer) -> ConnectError.Detail? {
    var detail = ConnectError.Detail(type: "", value: ByteBuffer())
    var reader = ProtobufReader(bytes)
    while let field = reader.next() {
      switch (field.number, field.value) {
      case (1, .bytes(let url)):
        let url = String(buffer: url)
        let start = url.utf8.lastIndex(of: UInt8(ascii: "/")).map { url.utf8.index(after: $0) }
        detail.type = PeerText.value(String(url[(start ?? url.startIndex)...]))
      case (2, .bytes(let value)): detail.value = value
      default: break
      }
    }
    return reader.isAtEnd ? detail : nil
  }
}
