internal import Connect

/// How a body holds messages, as its content type says.
struct BodyFormat: Sendable, Hashable {
  enum Framing: Sendable {
    /// The body is one message.
    case whole
    case enveloped
    /// Envelopes in base64.
    case text
  }

  /// The protocol's name, for people and for matching.
  let networkProtocol: String
  let framing: Framing
  /// The name of the messages' codec; nil if the content type is not that of an RPC protocol.
  let codec: String?
  /// The header that names the compression of messages.
  let encodingHeader: String
  /// The flag of the envelope that ends the body, which holds no message; 0 without one.
  let endFlag: UInt8

  private static let grpc: [(type: String, name: String, framing: Framing, endFlag: UInt8)] = [
    // The longest first: each is a prefix of the one before.
    ("application/grpc-web-text", "grpc-web-text", .text, 0x80),
    ("application/grpc-web", "grpc-web", .enveloped, 0x80),
    ("application/grpc", "grpc", .enveloped, 0),
  ]

  init(contentType: String?) {
    let type = (contentType ?? "").prefix { $0 != ";" && $0 != " " }.lowercased()
    for form in Self.grpc where type == form.type || type.hasPrefix(form.type + "+") {
      self.networkProtocol = form.name
      self.framing = form.framing
      self.codec = type == form.type ? "proto" : String(type.dropFirst(form.type.count + 1))
      self.encodingHeader = "grpc-encoding"
      self.endFlag = form.endFlag
      return
    }
    let stream = "application/connect+"
    let isStream = type.hasPrefix(stream)
    let prefix = isStream ? stream : "application/"
    self.networkProtocol = "connect"
    self.framing = isStream ? .enveloped : .whole
    self.codec = type.hasPrefix(prefix) ? String(type.dropFirst(prefix.count)) : nil
    self.encodingHeader = isStream ? "connect-content-encoding" : "content-encoding"
    self.endFlag = isStream ? 0x02 : 0
  }

  /// The format of a response's body: messages only with status 200, else one text.
  init(of status: Int, _ headers: Headers) {
    let format = BodyFormat(contentType: headers.first("content-type"))
    self = status == 200 || format.framing == .whole ? format : BodyFormat(contentType: nil)
  }

  /// Protocol and codec. A recorded call answers only calls with the same name.
  var name: String { self.codec.map { "\(self.networkProtocol)+\($0)" } ?? self.networkProtocol }
}

extension Headers {
  /// The compression that a header names; nil for none.
  func encoding(_ header: String) -> String? {
    self.first(header).flatMap { $0 == "identity" || $0.isEmpty ? nil : $0 }
  }
}
