internal import Connect
internal import NIOCore
internal import Synchronization

/// A unary call in the Connect protocol. <https://connectrpc.com/docs/protocol#unary-rpcs>
final class ConnectUnaryCall: WireCall {
  private struct State {
    var isReceived = false
    var response: ByteBuffer?
  }

  let exchange: any ServerExchange
  let codec: any Codec
  let timeout: Duration?
  let metadata = ServerMetadata()
  private let options: ServerOptions
  private let query: GETQuery?
  private let state = Mutex(State())

  /// - Parameter query: The message of a GET request; nil for POST.
  init(
    _ exchange: any ServerExchange,
    codec: any Codec,
    timeout: Duration?,
    options: ServerOptions,
    query: GETQuery? = nil
  ) {
    self.exchange = exchange
    self.codec = codec
    self.timeout = timeout
    self.options = options
    self.query = query
  }

  func receive() async throws -> ByteBuffer? {
    let isFirst = self.state.withLock { state in
      defer { state.isReceived = true }
      return !state.isReceived
    }
    guard isFirst else { return nil }
    if let query = self.query {
      return try self.options.decompress(query.message, encoding: query.compression)
    }
    let encoding = self.exchange.head.headers.first("content-encoding")
    // Checked before the body is read: a body in an unknown compression is of no use.
    _ = try self.options.requestCompression(named: encoding)
    return try self.options.decompress(
      try await self.exchange.body(limit: ServerOptions.messageLimit),
      encoding: encoding
    )
  }

  /// Nothing: the status, which comes first, depends on the outcome.
  func sendHeaders() {}

  func send(_ message: ByteBuffer) {
    self.state.withLock { $0.response = message }
  }

  func finish(_ error: ConnectError?) async throws {
    var headers: Headers
    var body: ByteBuffer
    if let error {
      headers = ["content-type": ["application/json"]]
      body = try ByteBuffer(json: ConnectErrorBody(error))
    } else {
      headers = ["content-type": ["application/\(self.codec.name)"]]
      body = self.state.withLock { $0.response } ?? ByteBuffer()
      let accepted = self.exchange.head.headers.first("accept-encoding")
      if body.readableBytes > 0, let pool = self.options.responseCompression(accepting: accepted) {
        body = try pool.compress(body)
        headers.add(name: "content-encoding", value: pool.name)
      }
    }
    headers.add(name: "content-length", value: "\(body.readableBytes)")
    headers.add(name: "accept-encoding", value: self.options.acceptedEncodings)
    headers.append(contentsOf: self.metadata.headers)
    headers.append(contentsOf: error?.metadata ?? [:])
    for trailer in self.metadata.trailers {
      headers.add(name: "trailer-" + trailer.name, value: trailer.value)
    }
    try await self.exchange.respond(status: error?.code.serverHTTPStatus ?? 200, headers: headers, body: body)
  }
}

extension Code {
  /// The HTTP status of a failed unary call. <https://connectrpc.com/docs/protocol#error-codes>
  var serverHTTPStatus: Int {
    switch self {
    case .ok: 200
    case .canceled: 499
    case .invalidArgument, .failedPrecondition, .outOfRange: 400
    case .deadlineExceeded: 504
    case .notFound: 404
    case .alreadyExists, .aborted: 409
    case .permissionDenied: 403
    case .resourceExhausted: 429
    case .unimplemented: 501
    case .unavailable: 503
    case .unauthenticated: 401
    case .unknown, .internalError, .dataLoss: 500
    }
  }
}
