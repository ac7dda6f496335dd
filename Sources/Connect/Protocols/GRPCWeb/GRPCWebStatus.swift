internal import NIOCore

/// The trailers of gRPC-Web, which come in the body as a block of HTTP/1.1 header lines.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md#protocol-differences-vs-grpc-over-http2>
enum GRPCWebTrailers {
  /// The flag of the envelope that holds the trailers.
  static let flag: UInt8 = 0b1000_0000

  /// The fields in `block`.
  static func parse(_ block: ByteBuffer, maximumSize: Int = HeaderListSize.defaultLimit) throws(ConnectError)
    -> Headers
  {
    var text = ReceivedText()
    return try self.parse(block, maximumSize: maximumSize, &text)
  }

  /// The fields in `block`. A line ends with CRLF, with a bare LF, or with the block. Names may be in any case; spaces
  /// around values are removed. Fields with impossible names are left out.
  ///
  /// - Parameters:
  ///   - maximumSize: How large the fields may be, counted like a header list.
  ///   - text: Counts what is changed in the fields.
  /// - Throws: ``ConnectError``: `internal` if a line has no name, `resource_exhausted` if they are too large.
  static func parse(
    _ block: ByteBuffer,
    maximumSize: Int,
    _ text: inout ReceivedText
  ) throws(ConnectError) -> Headers {
    var fields = Headers()
    for line in block.readableBytesView.split(separator: UInt8(ascii: "\n")) {
      let line = self.trimmed(line)
      if line.isEmpty { continue }
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
        throw ConnectError(
          code: .internalError,
          message: "the trailers in the response's body have a line that is no field"
        )
      }
      text.add(
        name: String(decoding: self.trimmed(line[..<colon]), as: UTF8.self),
        value: String(decoding: self.trimmed(line[line.index(after: colon)...]), as: UTF8.self),
        to: &fields
      )
    }
    try HeaderListSize.check(metadata: fields, limit: maximumSize)
    return fields
  }

  private static func trimmed(_ bytes: ByteBufferView) -> ByteBufferView {
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
    let rest = bytes.drop(while: isSpace)
    guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return rest[rest.endIndex...] }
    return rest[...last]
  }
}
