internal import Connect
internal import NIOCore

/// The query of a call that came as GET. <https://connectrpc.com/docs/protocol#unary-get-request>
struct GETQuery {
  let codecName: String
  let compression: String?
  let message: ByteBuffer

  /// Nil if the query is not one of the Connect protocol.
  init?(_ query: String) {
    var values: [String: String] = [:]
    for item in query.split(separator: "&") {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = parts.count > 1 ? PercentEncoding.decode(String(parts[1].replacing("+", with: "%20"))) : ""
      if values[String(parts[0])] == nil { values[String(parts[0])] = value }
    }
    guard values["connect"] == "v1", let codecName = values["encoding"], let message = values["message"]
    else {
      return nil
    }
    self.codecName = codecName
    self.compression = values["compression"]
    guard values["base64"] == "1" else {
      self.message = ByteBuffer(string: message)
      return
    }
    guard let bytes = Base64.decode(message) else { return nil }
    self.message = bytes
  }
}
