package import Connect

/// What a server understands, and how it answers.
package struct ServerOptions: Sendable {
  /// The largest message that a server takes, in bytes.
  static let messageLimit = 64 << 20

  /// The encodings of messages, by the name in the content type. The first codec with a name counts.
  package var codecs: [any Codec]
  /// The compressions that requests may be in.
  package var requestCompressions: [any CompressionPool]
  /// The compression of responses to clients that accept it; nil for none.
  package var responseCompression: (any CompressionPool)?

  package init(
    codecs: [any Codec] = [ProtoCodec(), JSONCodec()],
    requestCompressions: [any CompressionPool] = [],
    responseCompression: (any CompressionPool)? = nil
  ) {
    self.codecs = codecs
    self.requestCompressions = requestCompressions
    self.responseCompression = responseCompression
  }

  func codec(named name: String) -> (any Codec)? {
    self.codecs.first { $0.name == name }
  }

  /// What the server announces that it accepts.
  var acceptedEncodings: String {
    self.requestCompressions.isEmpty
      ? "identity" : self.requestCompressions.map(\.name).joined(separator: ",")
  }

  /// The compression of a request; nil if it is not compressed.
  ///
  /// - Throws: ``ConnectError`` with `unimplemented` for a compression that the server does not know.
  func requestCompression(named name: String?) throws(ConnectError) -> (any CompressionPool)? {
    guard let name, name != "identity" else { return nil }
    if let pool = self.requestCompressions.first(where: { $0.hasName(name) }) { return pool }
    throw ConnectError(
      code: .unimplemented,
      message: "unknown compression \"\(name)\": supported is \(self.acceptedEncodings)"
    )
  }

  /// The compression of a response; nil if the client's `header` does not accept it.
  func responseCompression(accepting header: String?) -> (any CompressionPool)? {
    guard let pool = self.responseCompression, let header else { return nil }
    let names = header.split { $0 == "," || $0 == " " }
    return names.contains { pool.hasName(String($0)) } ? pool : nil
  }
}
