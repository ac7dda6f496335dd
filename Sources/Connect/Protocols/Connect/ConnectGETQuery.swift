internal import NIOCore

/// The query that carries a side-effect-free unary request, <https://connectrpc.com/docs/protocol#unary-get-request>.
///
/// Equal messages give equal queries, so that caches can do their work: the parameters' order is fixed.
enum ConnectGETQuery {
  /// - Parameters:
  ///   - codecName: The content-type's subtype. JSON that is not compressed goes as text, percent-encoded;
  ///     everything else as base64 for URLs, without padding.
  ///   - encoding: Nil if the message is not compressed.
  static func make(message: ByteBuffer, codecName: String, encoding: String?) -> String {
    let isText = codecName == "json" && encoding == nil
    var query = "connect=v1"
    if !isText { query += "&base64=1" }
    if let encoding { query += "&compression=\(PercentEncoding.encode(encoding.utf8))" }
    query += "&encoding=\(PercentEncoding.encode(codecName.utf8))&message="
    query +=
      isText
      ? PercentEncoding.encode(message.readableBytesView)
      : String(buffer: Base64.encode(message, alphabet: .urlSafe, isPadded: false))
    return query
  }
}
