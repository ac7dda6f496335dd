internal import Connect
internal import NIOCore

/// A streaming call in the Connect protocol. <https://connectrpc.com/docs/protocol#streaming-rpcs>
final class ConnectStreamCall: WireCall {
  private struct EndOfStream: Encodable {
    var error: ConnectErrorBody?
    var metadata: [String: [String]]?
  }

  private static let endFlag: UInt8 = 0x02

  let exchange: any ServerExchange
  let codec: any Codec
  let timeout: Duration?
  let metadata = ServerMetadata()
  private let reader: EnvelopeReader
  private let acceptedEncodings: String
  private let compression: (any CompressionPool)?

  init(_ exchange: any ServerExchange, codec: any Codec, timeout: Duration?, options: ServerOptions) {
    self.exchange = exchange
    self.codec = codec
    self.timeout = timeout
    let headers = exchange.head.headers
    self.reader = EnvelopeReader(
      exchange,
      options: options,
      encoding: headers.first("connect-content-encoding")
    )
    self.acceptedEncodings = options.acceptedEncodings
    self.compression = options.responseCompression(accepting: headers.first("connect-accept-encoding"))
  }

  func receive() async throws -> ByteBuffer? {
    try await self.reader.next()
  }

  func sendHeaders() async throws {
    guard let custom = self.metadata.takeHeaders() else { return }
    var headers: Headers = [
      "content-type": ["application/connect+\(self.codec.name)"],
      "connect-accept-encoding": [self.acceptedEncodings],
    ]
    if let pool = self.compression { headers.add(name: "connect-content-encoding", value: pool.name) }
    headers.append(contentsOf: custom)
    try await self.exchange.sendHead(status: 200, headers: headers)
  }

  func send(_ message: ByteBuffer) async throws {
    try await self.sendHeaders()
    try await self.exchange.sendBody(try Envelope.encode(message, with: self.compression))
  }

  func finish(_ error: ConnectError?) async throws {
    try await self.sendHeaders()
    try await self.exchange.sendEnd(try Self.end(error, self.metadata.trailers), trailers: [:])
  }

  /// The envelope that ends a response.
  static func end(_ error: ConnectError?, _ trailers: Headers) throws -> ByteBuffer {
    var metadata: [String: [String]] = [:]
    for field in trailers { metadata[field.name, default: []].append(field.value) }
    for field in error?.metadata ?? [:] { metadata[field.name, default: []].append(field.value) }
    let end = EndOfStream(
      error: error.map(ConnectErrorBody.init),
      metadata: metadata.isEmpty ? nil : metadata
    )
    return Envelope.encode(try ByteBuffer(json: end), flags: Self.endFlag)
  }
}

extension Envelope {
  /// `message` in an envelope, compressed if there is a pool.
  static func encode(_ message: ByteBuffer, with pool: (any CompressionPool)?) throws -> ByteBuffer {
    guard let pool else { return Self.encode(message) }
    return Self.encode(try pool.compress(message), flags: Self.compressedFlag)
  }
}
