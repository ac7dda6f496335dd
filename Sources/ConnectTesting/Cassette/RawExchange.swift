internal import Connect
internal import ConnectChannels
internal import NIOCore

/// A call as it passed the endpoint, before it is written down.
struct RawExchange: Sendable {
  enum Event: Sendable {
    case sent(ByteBuffer)
    case finished(Headers)
    case head(HTTPResponseHead)
    case received(ByteBuffer)
    case ended(Headers)
    case failed(HTTPStreamFailure)
    case cancelled
  }

  let request: HTTPStreamRequest
  var version: HTTPConnectionInfo.Version?
  private(set) var events: [(time: Duration, event: Event)] = []
  private var sentSize = 0
  private var receivedSize = 0
  /// In bytes.
  var size: Int { self.sentSize + self.receivedSize }
  /// The direction that has more bytes than a cassette takes. Nothing more is kept then.
  private(set) var tooLarge: String?
  /// Whether the cassette had no room for the call.
  private(set) var isDropped = false

  init(_ request: HTTPStreamRequest, limit: Int) {
    self.request = request
    guard case .complete(let body) = request.body else { return }
    self.add(.sent(body), at: .zero, limit: limit)
    self.add(.finished([:]), at: .zero, limit: limit)
  }

  mutating func add(_ event: Event, at time: Duration, limit: Int) {
    guard self.tooLarge == nil, !self.isDropped else { return }
    switch event {
    case .sent(let bytes):
      self.sentSize += bytes.readableBytes
      if self.sentSize > limit { self.tooLarge = "request" }
    case .received(let bytes):
      self.receivedSize += bytes.readableBytes
      if self.receivedSize > limit { self.tooLarge = "response" }
    default: break
    }
    if self.tooLarge == nil { self.events.append((time, event)) } else { self.events = [] }
  }

  /// Nothing is kept of the call any more.
  mutating func drop() {
    self.isDropped = true
    self.events = []
  }
}

extension RecordedExchange {
  /// - Throws: ``CassetteError`` if the call is too large, or if something has to be redacted and cannot be.
  /// - Returns: The call, and the paths of the fields that were taken out.
  static func make(
    _ raw: RawExchange,
    _ rules: CassetteRules
  ) throws(CassetteError) -> (exchange: RecordedExchange, foundPaths: Set<String>) {
    var request = RequestReader(rules, raw.request)
    var response: RecordedBodyReader?
    var parts: [Part] = []
    var lastChunk = 0
    if raw.isDropped {
      throw CassetteError(
        place: request.path,
        problem: "the cassette would have more than \(rules.configuration.maximumSize) bytes, its maximumSize"
      )
    }
    if let what = raw.tooLarge { throw .tooLarge(what, of: request.path, rules) }
    for (time, event) in raw.events {
      let milliseconds = max(time.clamped, .zero).attoseconds / 1_000_000_000_000_000
      let time = Int(Int32(clamping: milliseconds))
      switch event {
      case .sent(let bytes):
        let payloads = try request.receive(bytes)
        parts += payloads.map { Part(time: time, event: .send($0)) }
      case .finished(let trailers):
        let payloads = try request.finish()
        parts += payloads.map { Part(time: time, event: .send($0)) }
        parts.append(Part(time: time, event: .finish(request.redacted(trailers))))
      case .head(let head):
        var reader = RecordedBodyReader(rules, request, head)
        let headers = rules.redacted(head.headers, &reader.secrets)
        response = reader
        parts.append(Part(time: time, event: .head(status: head.status, headers: headers)))
      case .received(let bytes):
        response?.secrets.merge(request.secrets)
        let payloads = try response?.receive(bytes) ?? []
        parts += payloads.map { Part(time: time, event: .receive($0)) }
        lastChunk = time
      case .ended(let trailers):
        response?.secrets.merge(request.secrets)
        let payloads = try response?.finish() ?? []
        parts += payloads.map { Part(time: lastChunk, event: .receive($0)) }
        var secrets = response?.secrets ?? request.secrets
        parts.append(Part(time: time, event: .end(rules.redacted(trailers, &secrets))))
        response?.secrets = secrets
      case .failed(let failure):
        let payloads = response?.breakOff() ?? []
        parts += payloads.map { Part(time: time, event: .receive($0)) }
        var failure = Failure(failure)
        let secrets = response?.secrets ?? request.secrets
        failure.message = failure.message.map { secrets.removed(from: $0) }
        parts.append(Part(time: time, event: .fail(failure)))
      case .cancelled: parts.append(Part(time: time, event: .cancel))
      }
    }
    // The length would not fit the changed body, and would tell how long the secrets are.
    if response?.secrets.hasChangedMessages == true { parts.removeContentLength() }
    let exchange = RecordedExchange(
      path: request.path,
      isGET: request.isGET,
      wire: request.wire,
      version: raw.version,
      headers: request.headers,
      parts: parts
    )
    var secrets = request.secrets
    if let response { secrets.merge(response.secrets) }
    try exchange.check(secrets)
    return (exchange, secrets.foundPaths)
  }

  /// - Throws: ``CassetteError`` if a value that was taken out in one place is left in another.
  private func check(_ secrets: Secrets) throws(CassetteError) {
    guard case .object(let members) = self.json(hasTimes: false) else { return }
    for member in members where member.name == "headers" || member.name == "parts" {
      guard secrets.stand(in: member.value) else { continue }
      throw CassetteError(
        place: self.path,
        problem:
          "a value that is redacted in one place of the call stands in another one, which has to be redacted, too"
      )
    }
  }
}

extension [RecordedExchange.Part] {
  fileprivate mutating func removeContentLength() {
    for index in self.indices {
      guard case .head(let status, var headers) = self[index].event else { continue }
      headers.remove(name: "content-length")
      self[index].event = .head(status: status, headers: headers)
    }
  }
}
