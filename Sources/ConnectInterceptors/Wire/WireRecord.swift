public import Connect
public import NIOCore

/// What a ``WireTap`` has seen: one part of one exchange.
public struct WireRecord: Sendable {
  /// A part of an exchange, with the values of sensitive headers replaced by `<redacted>`.
  public enum Event: Sendable {
    /// The head of the request. Its body is left out; if it is known as a whole, ``requestChunk(_:omitted:)`` follows.
    case requestHead(method: String, url: String, headers: Headers)
    /// A chunk of the request's body, and how many bytes of it are left out at its end.
    case requestChunk(ByteBuffer, omitted: Int)
    /// The end of the request.
    case requestEnd(trailers: Headers)
    /// The exchange has a connection.
    case connection(HTTPConnectionInfo)
    /// The head of the response.
    case responseHead(HTTPResponseHead)
    /// A chunk of the response's body, and how many bytes of it are left out at its end.
    case responseChunk(ByteBuffer, omitted: Int)
    /// The end of the response.
    case responseEnd(trailers: Headers)
    /// There is no whole response.
    case failure(code: Code, message: String)
    /// The call has given the exchange up: it was cancelled, or its deadline has passed.
    case abandoned(hasExpired: Bool)
    /// So many records of any exchanges were dropped before this one, since the sink was too slow.
    case dropped(Int)
  }

  /// Numbers the exchanges of a tap, from 1; 0 for ``Event/dropped(_:)``.
  public var exchange: UInt64
  /// The time since the exchange began.
  public var time: Duration
  /// What was seen.
  public var event: Event

  /// A record; for tests of sinks.
  public init(exchange: UInt64, time: Duration, event: Event) {
    self.exchange = exchange
    self.time = time
    self.event = event
  }

  /// About how many bytes of memory it takes.
  var size: Int {
    let overhead = 256
    return switch self.event {
    case .requestHead(_, let url, let headers): overhead + url.utf8.count + HeaderListSize.of(headers)
    case .requestChunk(let bytes, _), .responseChunk(let bytes, _): overhead + bytes.readableBytes
    case .requestEnd(let trailers), .responseEnd(let trailers): overhead + HeaderListSize.of(trailers)
    case .responseHead(let head): overhead + HeaderListSize.of(head.headers)
    case .failure(_, let message): overhead + message.utf8.count
    case .connection, .abandoned, .dropped: overhead
    }
  }
}

extension WireRecord: CustomStringConvertible {
  /// Lines for people, each with a line end: `#3 > POST http://…`, with `>` for what goes out and `<` for what comes in.
  /// Bodies are text if they are readable as such, else a dump of 16 bytes a line.
  public var description: String {
    switch self.event {
    case .requestHead(let method, let url, let headers):
      self.line(">", "\(method) \(Self.printable(url))") + self.lines(">", headers)
    case .requestChunk(let bytes, let omitted): self.lines(">", bytes, omitted)
    case .requestEnd(let trailers): self.line(">", "end of request") + self.lines(">", trailers)
    case .connection(let connection):
      self.line(
        "=",
        "\(connection.version.rawValue) to \(connection.remoteAddress ?? "?")\(connection.isReused ? ", reused" : "")"
      )
    case .responseHead(let head): self.line("<", "\(head.status)") + self.lines("<", head.headers)
    case .responseChunk(let bytes, let omitted): self.lines("<", bytes, omitted)
    case .responseEnd(let trailers): self.line("<", "end of response") + self.lines("<", trailers)
    case .failure(let code, let message): self.line("<", "failed: \(code.name), \(Self.printable(message))")
    case .abandoned(let hasExpired):
      self.line("=", hasExpired ? "given up, the deadline has passed" : "given up")
    case .dropped(let count): "# \(count) records dropped, the sink was too slow\n"
    }
  }

  private func line(_ direction: String, _ text: String) -> String {
    let (seconds, attoseconds) = self.time.clamped.components
    let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    let time = "\(microseconds / 1000).\(Self.padded(String(microseconds % 1000), "0", 3)) ms"
    return "#\(self.exchange) \(time) \(direction) \(text)\n"
  }

  private func lines(_ direction: String, _ headers: Headers) -> String {
    headers.map { self.line(direction, "\($0.name): \(Self.printable($0.value))") }.joined()
  }

  private func lines(_ direction: String, _ bytes: ByteBuffer, _ omitted: Int) -> String {
    let count = bytes.readableBytes
    let note = omitted == 0 ? "" : ", \(omitted) left out"
    return self.line(direction, "\(count + omitted) bytes\(note)") + WireDump.text(of: bytes)
  }

  static func padded(_ text: String, _ filling: Character, _ count: Int) -> String {
    String(repeating: filling, count: max(count - text.count, 0)) + text
  }

  /// `text` with `?` for what would break a line, or change a terminal.
  private static func printable(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { WireDump.isPrintable($0) ? $0 : "?" }))
  }
}

/// Bytes for people.
enum WireDump {
  /// Lines that are indented, each with a line end. None for no bytes.
  static func text(of bytes: ByteBuffer) -> String {
    guard bytes.readableBytes > 0 else { return "" }
    if let text = self.plainText(bytes) { return "    \(text)\n" }
    let bytes = Array(bytes.readableBytesView)
    return stride(from: 0, to: bytes.count, by: 16).map { start in
      let row = bytes[start..<min(start + 16, bytes.count)]
      let hexadecimal = row.map { Hexadecimal.text(CollectionOfOne($0)) }.joined(separator: " ")
      let text = String(
        decoding: row.map { (0x20..<0x7f).contains($0) ? $0 : UInt8(ascii: ".") },
        as: UTF8.self
      )
      let offset = WireRecord.padded(String(start, radix: 16), "0", 8)
      let gap = String(repeating: " ", count: 47 - hexadecimal.count)
      return "    \(offset)  \(hexadecimal)\(gap)  |\(text)|\n"
    }.joined()
  }

  /// The bytes as text; nil if they are not readable.
  private static func plainText(_ bytes: ByteBuffer) -> String? {
    guard let text = String(validating: bytes.readableBytesView, as: UTF8.self),
      text.unicodeScalars.allSatisfy(self.isPrintable)
    else { return nil }
    return text
  }

  /// Neither controls, nor what changes lines or the direction of text.
  static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    default: true
    }
  }
}
