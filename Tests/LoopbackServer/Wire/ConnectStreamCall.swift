internal import NIOCore

/// A streaming call in the Connect protocol. <https://connectrpc.com/docs/protocol#streaming-rpcs>
final class ConnectStreamCall: WireCall {
  private struct EndOfStream: Encodable {
    var error: RPCFailure.Body?
    var metadata: [String: [String]]?
  }

  let exchange: Exchange
  let codec: MessageCodec
  let timeout: Int64?
  var headers = HeaderFields()
  var trailers = HeaderFields()
  private var reader: EnvelopeReader
  private var areHeadersSent = false

  init(_ exchange: Exchange, codec: MessageCodec, timeout: Int64?) {
    self.exchange = exchange
    self.codec = codec
    self.timeout = timeout
    self.reader = EnvelopeReader(exchange)
  }

  func receive() async throws -> ByteBuffer? {
    try await self.reader.next()
  }

  func sendHeaders() async throws {
    guard !self.areHeadersSent else { return }
    self.areHeadersSent = true
    var headers: HeaderFields = [
      "content-type": "application/connect+\(self.codec.rawValue)", "connect-accept-encoding": "identity",
    ]
    headers.add(contentsOf: self.headers)
    try await self.exchange.sendHead(status: 200, headers: headers)
  }

  func send(_ message: ByteBuffer) async throws {
    try await self.sendHeaders()
    try await self.exchange.sendBody(ByteBuffer(envelope: message, flags: 0))
  }

  func finish(_ failure: RPCFailure?) async throws {
    try await self.sendHeaders()
    var metadata: [String: [String]] = [:]
    for field in self.trailers.fields { metadata[field.name, default: []].append(field.value) }
    let end = EndOfStream(error: failure?.body, metadata: metadata.isEmpty ? nil : metadata)
    let json = try ByteBuffer(json: end)
    try await self.exchange.sendEnd(ByteBuffer(envelope: json, flags: 0x02))
  }
}
