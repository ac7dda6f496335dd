internal import CNghttp2

@testable internal import ConnectNIO

/// A frame as it is on the wire, made or parsed by the tests without the engine under test.
struct HTTP2Frame: Equatable {
  enum Kind: UInt8 {
    case data = 0
    case headers = 1
    case priority = 2
    case reset = 3
    case settings = 4
    case pushPromise = 5
    case ping = 6
    case goAway = 7
    case windowUpdate = 8
    case continuation = 9
  }

  static let endStream: UInt8 = 0x1
  static let ack: UInt8 = 0x1
  static let endHeaders: UInt8 = 0x4

  var kind: Kind
  var flags: UInt8 = 0
  var streamID: Int32 = 0
  var payload: [UInt8] = []

  var isEndStream: Bool { (self.kind == .data || self.kind == .headers) && self.flags & Self.endStream != 0 }
  var isAck: Bool { self.flags & Self.ack != 0 }

  /// The four bytes that the payload of RST_STREAM and WINDOW_UPDATE consists of.
  var number: UInt32 { self.payload.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }

  /// The error code of RST_STREAM or GOAWAY.
  var errorCode: HTTP2ErrorCode? {
    switch self.kind {
    case .reset: HTTP2ErrorCode(rawValue: self.number)
    case .goAway:
      HTTP2ErrorCode(rawValue: self.payload.dropFirst(4).prefix(4).reduce(0) { $0 << 8 | UInt32($1) })
    default: nil
    }
  }

  var bytes: [UInt8] {
    let count = UInt32(self.payload.count)
    let head = [UInt8(count >> 16 & 0xff), UInt8(count >> 8 & 0xff), UInt8(count & 0xff)]
    return head + [self.kind.rawValue, self.flags] + Self.bytes(UInt32(self.streamID)) + self.payload
  }

  static func bytes(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(number >> $0 & 0xff) }
  }

  static func settings(_ values: [UInt16: UInt32] = [:]) -> HTTP2Frame {
    HTTP2Frame(
      kind: .settings,
      payload: values.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] + Self.bytes($1) }
    )
  }

  static func settings(maxConcurrentStreams: UInt32) -> HTTP2Frame { .settings([3: maxConcurrentStreams]) }
  static func settings(initialWindow: UInt32) -> HTTP2Frame { .settings([4: initialWindow]) }
  static let settingsAck = HTTP2Frame(kind: .settings, flags: Self.ack)

  /// HPACK in its simplest form: literals, neither indexed nor compressed.
  static func fieldBlock(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { name, value in [0] + Self.literal(name) + Self.literal(value) }
  }

  private static func literal(_ text: String) -> [UInt8] {
    var count = text.utf8.count
    var bytes: [UInt8] = []
    if count < 127 {
      bytes = [UInt8(count)]
    } else {
      bytes = [127]
      count -= 127
      while count >= 128 {
        bytes.append(UInt8(count % 128 + 128))
        count /= 128
      }
      bytes.append(UInt8(count))
    }
    return bytes + Array(text.utf8)
  }

  static func headers(
    _ streamID: Int32,
    _ fields: [(String, String)] = [(":status", "200")],
    end: Bool = false
  ) -> HTTP2Frame {
    HTTP2Frame(
      kind: .headers,
      flags: Self.endHeaders | (end ? Self.endStream : 0),
      streamID: streamID,
      payload: Self.fieldBlock(fields)
    )
  }

  static func data(_ streamID: Int32, _ bytes: [UInt8], end: Bool = false) -> HTTP2Frame {
    HTTP2Frame(kind: .data, flags: end ? Self.endStream : 0, streamID: streamID, payload: bytes)
  }

  static func data(_ streamID: Int32, _ text: String, end: Bool = false) -> HTTP2Frame {
    .data(streamID, Array(text.utf8), end: end)
  }

  static func reset(_ streamID: Int32, _ errorCode: HTTP2ErrorCode) -> HTTP2Frame {
    HTTP2Frame(kind: .reset, streamID: streamID, payload: Self.bytes(errorCode.rawValue))
  }

  static func goAway(last: Int32, _ errorCode: HTTP2ErrorCode = .noError, debug: String = "") -> HTTP2Frame {
    let payload = Self.bytes(UInt32(last)) + Self.bytes(errorCode.rawValue) + Array(debug.utf8)
    return HTTP2Frame(kind: .goAway, payload: payload)
  }

  static func windowUpdate(_ streamID: Int32, _ count: UInt32) -> HTTP2Frame {
    HTTP2Frame(kind: .windowUpdate, streamID: streamID, payload: Self.bytes(count))
  }

  static func ping(_ payload: [UInt8] = Array(repeating: 7, count: 8), ack: Bool = false) -> HTTP2Frame {
    HTTP2Frame(kind: .ping, flags: ack ? Self.ack : 0, payload: payload)
  }
}

/// Takes apart what the client has sent.
struct HTTP2FrameParser {
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private var bytes: [UInt8] = []
  private var isPrefaceRead = false

  mutating func append(_ more: some Sequence<UInt8>) {
    self.bytes.append(contentsOf: more)
    if !self.isPrefaceRead, self.bytes.starts(with: Self.preface) {
      self.isPrefaceRead = true
      self.bytes.removeFirst(Self.preface.count)
    }
  }

  mutating func next() -> HTTP2Frame? {
    guard self.isPrefaceRead, self.bytes.count >= 9 else { return nil }
    let count = Int(self.bytes[0]) << 16 | Int(self.bytes[1]) << 8 | Int(self.bytes[2])
    guard self.bytes.count >= 9 + count, let kind = HTTP2Frame.Kind(rawValue: self.bytes[3]) else {
      return nil
    }
    let id = self.bytes[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    let frame = HTTP2Frame(
      kind: kind,
      flags: self.bytes[4],
      streamID: Int32(id & 0x7fff_ffff),
      payload: Array(self.bytes[9..<9 + count])
    )
    self.bytes.removeFirst(9 + count)
    return frame
  }
}

/// Decodes the client's header blocks.
final class HTTP2FieldDecoder {
  private var inflater: OpaquePointer?

  init() { nghttp2_hd_inflate_new(&self.inflater) }
  deinit { nghttp2_hd_inflate_del(self.inflater) }

  func decode(_ block: [UInt8]) -> [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    block.withUnsafeBufferPointer { block in
      var position = 0
      while true {
        var field = nghttp2_nv()
        var flags: Int32 = 0
        let start = block.baseAddress.map { $0 + position }
        let count = nghttp2_hd_inflate_hd2(self.inflater, &field, &flags, start, block.count - position, 1)
        guard count >= 0 else { break }
        position += count
        if UInt32(flags) & NGHTTP2_HD_INFLATE_EMIT.rawValue != 0 {
          fields.append((Self.text(field.name, field.namelen), Self.text(field.value, field.valuelen)))
        }
        if UInt32(flags) & NGHTTP2_HD_INFLATE_FINAL.rawValue != 0 { break }
      }
    }
    nghttp2_hd_inflate_end_headers(self.inflater)
    return fields
  }

  private static func text(_ start: UnsafeMutablePointer<UInt8>?, _ count: Int) -> String {
    String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }
}
