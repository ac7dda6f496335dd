internal import Connect
internal import NIOCore

/// Reads the body of a response as a cassette has it.
struct RecordedBodyReader {
  /// The secrets of the request and of the response.
  var secrets: Secrets

  private let rules: CassetteRules
  private let path: String
  private let isConnect: Bool
  private let isError: Bool
  private let format: BodyFormat
  private let encoding: String?
  private var body: BodyCollector

  /// - Parameter request: What the response answers.
  init(_ rules: CassetteRules, _ request: RequestReader, _ head: HTTPResponseHead) {
    self.rules = rules
    self.path = request.path
    self.isConnect = request.isConnect
    self.secrets = request.secrets
    self.isError = head.status != 200
    self.format = BodyFormat(of: head.status, head.headers)
    self.body = BodyCollector(self.format.framing, limit: rules.configuration.maximumBodySize)
    self.encoding = head.headers.encoding(self.format.encodingHeader)
  }

  mutating func receive(_ bytes: ByteBuffer) throws(CassetteError) -> [Payload] {
    guard self.body.add(bytes) else { throw .tooLarge("response", of: self.path, self.rules) }
    return try self.envelopes()
  }

  /// The messages that the end of the body completes.
  mutating func finish() throws(CassetteError) -> [Payload] {
    guard self.format.framing == .whole else {
      self.body.finish()
      return try self.envelopes() + self.breakOff()
    }
    let whole = self.body.rest
    guard whole.readableBytes > 0 else { return [] }
    return [try self.payload(of: whole, flags: self.encoding == nil ? 0 : Envelope.compressedFlag)]
  }

  /// The received part of a message that breaks off.
  func breakOff() -> [Payload] {
    let rest = self.body.rest
    guard rest.readableBytes > 0 else { return [] }
    var cut = Payload.Cut(received: rest.readableBytes)
    if self.format.framing != .whole, rest.readableBytes >= EnvelopeSplitter.prefixLength {
      cut.flags = rest.getInteger(at: rest.readerIndex) ?? 0
      cut.length = Int(rest.getInteger(at: rest.readerIndex + 1, as: UInt32.self) ?? 0)
    }
    return [Payload(content: .cut(cut))]
  }

  private mutating func envelopes() throws(CassetteError) -> [Payload] {
    var payloads: [Payload] = []
    while let envelope = self.body.nextEnvelope() {
      payloads.append(try self.payload(of: envelope.message, flags: envelope.flags))
    }
    return payloads
  }

  private mutating func payload(of bytes: ByteBuffer, flags: UInt8) throws(CassetteError) -> Payload {
    let isEnd = flags & self.format.endFlag != 0
    guard isEnd || self.isError else {
      return try self.rules.payload(
        of: bytes,
        flags: flags,
        encoding: self.encoding,
        codec: self.format.codec,
        method: self.path,
        side: .response,
        &self.secrets
      )
    }
    guard let plain = self.rules.decompressed(bytes, flags: flags, encoding: self.encoding) else {
      throw CassetteError(
        place: self.path,
        problem: "the end of the response cannot be redacted, since its compression "
          + "\"\(self.encoding ?? "")\" is none of the configuration's compressions"
      )
    }
    let isCompressed = flags & Envelope.compressedFlag != 0 && bytes.readableBytes > 0
    return Payload(
      content: isEnd && self.format.endFlag == 0x80
        ? .fields(try self.trailers(plain))
        : self.rules.errorContent(plain, isConnect: self.isConnect, isEnd: isEnd, &self.secrets),
      flags: isCompressed ? flags & ~Envelope.compressedFlag : flags,
      isCompressed: isCompressed
    )
  }

  /// The trailers in a body of gRPC-Web.
  private mutating func trailers(_ bytes: ByteBuffer) throws(CassetteError) -> Headers {
    var trailers = Headers()
    for line in String(buffer: bytes).split(whereSeparator: \.isNewline) {
      guard let colon = line.firstIndex(of: ":") else {
        throw CassetteError(place: self.path, problem: "the trailers in the response's body do not parse")
      }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      trailers.add(name: String(line[..<colon]), value: String(value))
    }
    return self.rules.redacted(trailers, &self.secrets)
  }
}
