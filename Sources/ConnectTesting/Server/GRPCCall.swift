internal import Connect
internal import NIOCore

/// A call in gRPC, whose status is in the HTTP trailers, or in gRPC-Web, which has them at the end of the body.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>,
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>
final class GRPCCall: WireCall {
  enum Form: String {
    case http2 = "application/grpc"
    case web = "application/grpc-web"
    case webText = "application/grpc-web-text"
  }

  private static let trailersFlag: UInt8 = 0x80

  let exchange: any ServerExchange
  let codec: any Codec
  let timeout: Duration?
  let metadata = ServerMetadata()
  private let form: Form
  private let reader: EnvelopeReader
  private let acceptedEncodings: String
  private let compression: (any CompressionPool)?

  init(_ exchange: any ServerExchange, codec: any Codec, form: Form, options: ServerOptions) {
    self.exchange = exchange
    self.codec = codec
    self.form = form
    let headers = exchange.head.headers
    self.timeout = headers.first("grpc-timeout").flatMap(Self.timeout)
    self.reader = EnvelopeReader(
      exchange,
      options: options,
      encoding: headers.first("grpc-encoding"),
      isText: form == .webText
    )
    self.acceptedEncodings = options.acceptedEncodings
    self.compression = options.responseCompression(accepting: headers.first("grpc-accept-encoding"))
  }

  func receive() async throws -> ByteBuffer? {
    try await self.reader.next()
  }

  func sendHeaders() async throws {
    guard let custom = self.metadata.takeHeaders() else { return }
    var headers: Headers = [
      "content-type": ["\(self.form.rawValue)+\(self.codec.name)"],
      "grpc-accept-encoding": [self.acceptedEncodings],
    ]
    if let pool = self.compression { headers.add(name: "grpc-encoding", value: pool.name) }
    headers.append(contentsOf: custom)
    try await self.exchange.sendHead(status: 200, headers: headers)
  }

  func send(_ message: ByteBuffer) async throws {
    try await self.sendHeaders()
    try await self.exchange.sendBody(self.text(try Envelope.encode(message, with: self.compression)))
  }

  func finish(_ error: ConnectError?) async throws {
    try await self.sendHeaders()
    let fields = Self.status(error, self.metadata.trailers)
    guard self.form != .http2 else {
      try await self.exchange.sendEnd(ByteBuffer(), trailers: fields)
      return
    }
    try await self.exchange.sendEnd(self.text(Self.envelope(of: fields)), trailers: [:])
  }

  /// The trailers that end a response.
  static func status(_ error: ConnectError?, _ trailers: Headers) -> Headers {
    var fields: Headers = ["grpc-status": ["\(error?.code.rawValue ?? 0)"]]
    if let error {
      fields.add(name: "grpc-message", value: PercentEncoding.encode((error.message ?? "").utf8))
      if !error.details.isEmpty {
        fields.addBinary(name: "grpc-status-details-bin", value: GRPCStatusBytes.encode(error))
      }
    }
    fields.append(contentsOf: trailers)
    fields.append(contentsOf: error?.metadata ?? [:])
    return fields
  }

  /// The trailers as the body of gRPC-Web has them.
  static func envelope(of trailers: Headers) -> ByteBuffer {
    let block = trailers.map { "\($0.name): \($0.value)\r\n" }.joined()
    return Envelope.encode(ByteBuffer(string: block), flags: Self.trailersFlag)
  }

  private func text(_ bytes: ByteBuffer) -> ByteBuffer {
    self.form == .webText ? Base64.encode(bytes, alphabet: .standard, isPadded: true) : bytes
  }

  /// The value of `grpc-timeout`: at most eight digits and a unit; nil for anything else.
  private static func timeout(_ text: String) -> Duration? {
    guard text.utf8.count <= 9, let unit = text.last, let number = Int64(text.dropLast()) else { return nil }
    switch unit {
    case "H": return .seconds(number * 3600)
    case "M": return .seconds(number * 60)
    case "S": return .seconds(number)
    case "m": return .milliseconds(number)
    case "u": return .microseconds(number)
    case "n": return .nanoseconds(number)
    default: return nil
    }
  }
}
