internal import NIOCore

/// A unary call in the Connect protocol. <https://connectrpc.com/docs/protocol#unary-rpcs>
final class ConnectUnaryCall: WireCall {
  /// The largest message that the server takes.
  static let messageLimit = 64 << 20

  let exchange: Exchange
  let codec: MessageCodec
  let timeout: Int64?
  var headers = HeaderFields()
  var trailers = HeaderFields()
  private var getMessage: ByteBuffer?
  private var isReceived = false
  private var response: ByteBuffer?

  /// - Parameter getMessage: The message of a GET request; nil for POST.
  init(_ exchange: Exchange, codec: MessageCodec, timeout: Int64?, getMessage: ByteBuffer? = nil) {
    self.exchange = exchange
    self.codec = codec
    self.timeout = timeout
    self.getMessage = getMessage
  }

  func receive() async throws -> ByteBuffer? {
    guard !self.isReceived else { return nil }
    self.isReceived = true
    if let message = self.getMessage { return message }
    if let encoding = self.exchange.request.headers.first("content-encoding"), encoding != "identity" {
      throw RPCFailure(.unimplemented, "unknown compression \"\(encoding)\": supported is identity")
    }
    return try await self.exchange.body(limit: Self.messageLimit)
  }

  func sendHeaders() {}

  func send(_ message: ByteBuffer) {
    self.response = message
  }

  func finish(_ failure: RPCFailure?) async throws {
    var headers: HeaderFields
    let body: ByteBuffer
    if let failure {
      headers = ["content-type": "application/json"]
      body = try ByteBuffer(json: failure.body)
    } else {
      headers = ["content-type": "application/\(self.codec.rawValue)"]
      body = self.response ?? ByteBuffer()
    }
    headers.add("content-length", "\(body.readableBytes)")
    headers.add("accept-encoding", "identity")
    headers.add(contentsOf: self.headers)
    for trailer in self.trailers.fields { headers.add("trailer-" + trailer.name, trailer.value) }
    let status = failure?.code.httpStatus ?? 200
    try await self.exchange.respond(status: status, headers: headers, body: body)
  }
}
