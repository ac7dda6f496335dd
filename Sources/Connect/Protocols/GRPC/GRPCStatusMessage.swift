internal import NIOCore

/// The message `google.rpc.Status`, of which we need to read three fields and to keep the details' bytes as they
/// are. <https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto>
struct GRPCStatusMessage {
  private(set) var code = 0
  private(set) var message = ""
  private(set) var details: [ConnectError.Detail] = []

  /// Nil if `bytes` are not protobuf.
  init?(_ bytes: ByteBuffer) {
    var reader = ProtobufFieldReader(bytes)
    while let field = reader.next() {
      switch (field.number, field.value) {
      case (1, .varint(let value)): self.code = Int(Int32(truncatingIfNeeded: value))
      case (2, .bytes(let text)): self.message = String(buffer: text)
      case (3, .bytes(let any)):
        guard let detail = Self.detail(any) else { return nil }
        self.details.append(detail)
      default: break
      }
    }
    guard reader.isAtEnd else { return nil }
  }

  /// A `google.protobuf.Any`.
  private static func detail(_ bytes: ByteBuffer) -> ConnectError.Detail? {
    var detail = ConnectError.Detail(type: "", value: ByteBuffer())
    var reader = ProtobufFieldReader(bytes)
    while let field = reader.next() {
      switch (field.number, field.value) {
      case (1, .bytes(let url)):
        let url = String(buffer: url)
        let start = url.utf8.lastIndex(of: UInt8(ascii: "/")).map { url.utf8.index(after: $0) }
        detail.type = String(url[(start ?? url.startIndex)...])
      case (2, .bytes(let value)): detail.value = value
      default: break
      }
    }
    return reader.isAtEnd ? detail : nil
  }
}

/// Reads a protobuf message field by field, without knowing its type.
/// <https://protobuf.dev/programming-guides/encoding>
struct ProtobufFieldReader {
  enum Value {
    case varint(UInt64)
    case bytes(ByteBuffer)
    /// Four or eight bytes.
    case fixed
  }

  private var bytes: ByteBuffer
  private var hasFailed = false

  init(_ bytes: ByteBuffer) {
    self.bytes = bytes
  }

  /// Whether everything was read and was well-formed.
  var isAtEnd: Bool { !self.hasFailed && self.bytes.readableBytes == 0 }

  /// The next field; nil at the end, and for what is not well-formed.
  mutating func next() -> (number: UInt64, value: Value)? {
    guard !self.hasFailed, self.bytes.readableBytes > 0 else { return nil }
    guard let tag = self.readVarint(), tag >> 3 > 0, let value = self.readValue(wireType: tag & 7) else {
      self.hasFailed = true
      return nil
    }
    return (tag >> 3, value)
  }

  private mutating func readValue(wireType: UInt64) -> Value? {
    switch wireType {
    case 0: self.readVarint().map(Value.varint)
    case 1: self.bytes.readSlice(length: 8).map { _ in .fixed }
    case 2:
      self.readVarint().flatMap { Int(exactly: $0) }.flatMap { self.bytes.readSlice(length: $0) }.map(
        Value.bytes
      )
    case 5: self.bytes.readSlice(length: 4).map { _ in .fixed }
    // Groups: proto3 has none.
    default: nil
    }
  }

  private mutating func readVarint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard let byte = self.bytes.readInteger(as: UInt8.self) else { return nil }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }
}
