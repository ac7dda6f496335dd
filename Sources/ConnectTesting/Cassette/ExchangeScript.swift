internal import Connect
internal import ConnectChannels
internal import NIOCore

/// A recorded call, ready to be served.
struct ExchangeScript: Sendable {
  enum Step: Sendable {
    /// Waits for the next message of the request.
    case send
    /// Waits for the request's end.
    case finish
    case serve(ServedPart)
    /// No more parts are served.
    case silence
  }

  /// What the server's side does.
  enum ServedPart: Sendable {
    case head(HTTPResponseHead)
    case body(ByteBuffer)
    case end(Headers)
    case fail(HTTPStreamFailure)

    fileprivate func isEqual(to other: ServedPart) -> Bool {
      switch (self, other) {
      case (.head(let one), .head(let two)): one.status == two.status && one.headers == two.headers
      case (.body(let one), .body(let two)): one == two
      case (.end(let one), .end(let two)): one == two
      default: false
      }
    }
  }

  private(set) var steps: [(time: Int, step: Step)] = []
  let messages: [Payload]
  /// Whether the response came, or the client gave up, before the request had ended.
  private(set) var endsEarly = true
  /// How many messages the client must have sent before the first part is served, and whether it must have finished.
  private(set) var openingMessageCount = 0
  private(set) var opensWithFinish = false

  /// - Throws: ``CassetteError`` for parts in an impossible order, and for messages that do not fit their types.
  init(_ exchange: RecordedExchange, _ rules: CassetteRules, place: String) throws(CassetteError) {
    self.messages = exchange.messages
    var response = Response(exchange, rules)
    var isOpening = true
    var hasEnded = false
    for (index, part) in exchange.parts.enumerated() {
      let place = "\(place).parts[\(index)]"
      func check(_ isPossible: Bool, _ problem: String) throws(CassetteError) {
        if !isPossible || hasEnded {
          throw CassetteError(place: place, problem: hasEnded ? "there are parts behind the end" : problem)
        }
      }
      let step: Step
      switch part.event {
      case .send:
        try check(self.endsEarly, "a message stands behind the request's end")
        if isOpening { self.openingMessageCount += 1 }
        step = .send
      case .finish:
        try check(self.endsEarly, "the request ends twice")
        self.endsEarly = false
        if isOpening { self.opensWithFinish = true }
        step = .finish
      case .head(let status, let headers):
        try check(response.head == nil, "the response has two heads")
        step = .serve(.head(response.begin(HTTPResponseHead(status: status, headers: headers))))
      case .receive(let payload):
        try check(response.head != nil, "the head of the response is missing before this")
        step = .serve(.body(try response.bytes(of: payload, place: "\(place).receive")))
      case .end(let trailers):
        try check(response.head != nil, "the head of the response is missing before this")
        step = .serve(.end(trailers))
        hasEnded = true
      case .fail(let failure):
        try check(true, "")
        step = .serve(.fail(failure.failure))
        hasEnded = true
      case .cancel:
        try check(true, "")
        step = .silence
        hasEnded = true
      }
      switch step {
      case .send, .finish: break
      case .serve, .silence: isOpening = false
      }
      self.steps.append((part.time, step))
    }
    guard hasEnded else {
      throw CassetteError(
        place: "\(place).parts",
        problem: "the end is missing: \"end\", \"fail\" or \"cancel\""
      )
    }
  }

  /// Whether both serve the same in their first `count` parts.
  func serves(_ count: Int, as other: ExchangeScript) -> Bool {
    let (mine, others) = (self.servedParts(count), other.servedParts(count))
    return mine.count == count && others.count == count
      && zip(mine, others).allSatisfy { $0.isEqual(to: $1) }
  }

  private func servedParts(_ count: Int) -> [ServedPart] {
    Array(
      self.steps.lazy.compactMap { step -> ServedPart? in
        if case .serve(let part) = step.step { part } else { nil }
      }.prefix(count)
    )
  }
}

/// Makes the bytes of a response again.
private struct Response {
  private let path: String
  private let rules: CassetteRules
  private(set) var head: HTTPResponseHead?
  private var format = BodyFormat(contentType: nil)

  init(_ exchange: RecordedExchange, _ rules: CassetteRules) {
    self.path = exchange.path
    self.rules = rules
  }

  mutating func begin(_ head: HTTPResponseHead) -> HTTPResponseHead {
    self.head = head
    self.format = BodyFormat(of: head.status, head.headers)
    return head
  }

  func bytes(of payload: Payload, place: String) throws(CassetteError) -> ByteBuffer {
    if case .cut(let cut) = payload.content { return self.encoded(self.beginning(cut)) }
    var bytes = try self.content(of: payload, place: place)
    var flags = payload.flags
    if payload.isCompressed {
      let name = self.head?.headers.encoding(self.format.encodingHeader)
      guard let pool = self.rules.pool(named: name), let compressed = try? pool.compress(bytes) else {
        throw CassetteError(
          place: place,
          problem: "cannot be compressed: \"\(name ?? "")\" is none of the configuration's compressions"
        )
      }
      bytes = compressed
      flags |= Envelope.compressedFlag
    }
    if self.format.framing != .whole { bytes = Envelope.encode(bytes, flags: flags) }
    return self.encoded(bytes)
  }

  private func encoded(_ bytes: ByteBuffer) -> ByteBuffer {
    self.format.framing == .text ? Base64.encode(bytes, alphabet: .standard, isPadded: true) : bytes
  }

  private func content(of payload: Payload, place: String) throws(CassetteError) -> ByteBuffer {
    switch payload.content {
    case .text(let text): return ByteBuffer(string: text)
    case .bytes(let bytes): return bytes
    case .cut: return ByteBuffer()
    case .fields(let fields):
      return ByteBuffer(string: fields.map { "\($0.name): \($0.value)\r\n" }.joined())
    case .json(let value):
      let isMessage = self.head?.status == 200 && payload.flags & self.format.endFlag == 0
      guard isMessage, self.format.codec == "proto" else { return ByteBuffer(string: value.description) }
      guard let form = self.rules.form(of: self.path, .response) else {
        throw CassetteError(
          place: place,
          problem: "the message's type is not known: add \(self.path) to the configuration's messages"
        )
      }
      do {
        return try form.bytes(of: value)
      } catch {
        throw CassetteError(place: place, problem: "is no message of its type: \(error)")
      }
    }
  }

  /// As many bytes as had arrived of a message. Their values do not matter.
  private func beginning(_ cut: Payload.Cut) -> ByteBuffer {
    guard self.format.framing != .whole, cut.received >= EnvelopeSplitter.prefixLength else {
      return ByteBuffer(repeating: 0, count: cut.received)
    }
    var bytes = ByteBuffer()
    bytes.writeInteger(cut.flags)
    bytes.writeInteger(UInt32(clamping: cut.length))
    bytes.writeRepeatingByte(0, count: cut.received - EnvelopeSplitter.prefixLength)
    return bytes
  }
}
