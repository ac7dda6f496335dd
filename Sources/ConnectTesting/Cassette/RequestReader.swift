internal import Connect
internal import NIOCore

/// Reads a request as a cassette has it, both to record it and to find its answer.
struct RequestReader: Sendable {
  /// `/package.Service/Method`, without the base path that a client's host may have.
  let path: String
  let isGET: Bool
  /// Protocol and codec.
  let wire: String
  private(set) var headers = Headers()
  private(set) var secrets = Secrets()

  /// Whether it is a call of the Connect protocol.
  var isConnect: Bool { self.format.networkProtocol == "connect" }

  private let rules: CassetteRules
  private let format: BodyFormat
  private let encoding: String?
  private let query: GETQuery?
  private var body: BodyCollector

  /// - Parameters:
  ///   - query: What follows the question mark; empty if there is none.
  ///   - authority: What the call asks for in place of its origin's host. A cassette has it as the header `host`.
  init(
    _ rules: CassetteRules,
    method: String,
    path: String,
    query: String,
    headers: Headers,
    authority: String?
  ) {
    self.rules = rules
    self.isGET = method == "GET"
    self.path = "/" + path.split(separator: "/").suffix(2).joined(separator: "/")
    self.query = self.isGET ? GETQuery(query) : nil
    let contentType = self.query.map { "application/" + $0.codecName } ?? headers.first("content-type")
    self.format = BodyFormat(contentType: contentType)
    self.body = BodyCollector(self.format.framing, limit: rules.configuration.maximumBodySize)
    self.wire = self.format.name
    self.encoding = self.query.map(\.compression) ?? headers.encoding(self.format.encodingHeader)
    self.headers = rules.redacted(headers, &self.secrets)
    if let authority { self.headers["host"] = [authority.lowercased()] }
  }

  init(_ rules: CassetteRules, _ request: HTTPStreamRequest) {
    let target = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    self.init(
      rules,
      method: request.method.rawValue,
      path: target.first.map(String.init) ?? "",
      query: target.count > 1 ? String(target[1]) : "",
      headers: request.headers,
      authority: request.authority
    )
  }

  /// The messages that these bytes complete.
  mutating func receive(_ bytes: ByteBuffer) throws(CassetteError) -> [Payload] {
    guard self.body.add(bytes) else { throw .tooLarge("request", of: self.path, self.rules) }
    return try self.envelopes()
  }

  /// The messages that the end of the request completes.
  mutating func finish() throws(CassetteError) -> [Payload] {
    guard self.format.framing == .whole else {
      self.body.finish()
      return try self.envelopes()
    }
    guard !self.isGET || self.query != nil else { return [] }
    let message = self.query?.message ?? self.body.rest
    return [try self.payload(of: message, flags: self.encoding == nil ? 0 : Envelope.compressedFlag)]
  }

  /// The request's trailers as they go into the file.
  mutating func redacted(_ trailers: Headers) -> Headers {
    self.rules.redacted(trailers, &self.secrets)
  }

  private mutating func envelopes() throws(CassetteError) -> [Payload] {
    var payloads: [Payload] = []
    while let envelope = self.body.nextEnvelope() {
      payloads.append(try self.payload(of: envelope.message, flags: envelope.flags))
    }
    return payloads
  }

  private mutating func payload(of bytes: ByteBuffer, flags: UInt8) throws(CassetteError) -> Payload {
    var payload = try self.rules.payload(
      of: bytes,
      flags: flags,
      encoding: self.encoding,
      codec: self.format.codec,
      method: self.path,
      side: .request,
      &self.secrets
    )
    // The same request may come compressed or not.
    payload.isCompressed = false
    return payload
  }
}

extension CassetteError {
  static func tooLarge(_ what: String, of path: String, _ rules: CassetteRules) -> CassetteError {
    CassetteError(
      place: path,
      problem:
        "the \(what) has more than \(rules.configuration.maximumBodySize) bytes, the cassette's maximumBodySize"
    )
  }
}
