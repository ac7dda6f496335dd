internal import CNghttp3
internal import Connect
internal import ConnectNIO

/// Reads the header blocks of a session's responses. What they mean comes out as events.
struct HTTP3Responses {
  /// The largest header or trailer list.
  let limit: Int
  /// The last fields of responses and trailers, with which the next ones are compared. Blocks of several streams may come in
  /// turns, so each stream has a copy.
  private(set) var head = HTTPFieldBlock()
  private(set) var trailers = HTTPFieldBlock()

  init(limit: Int) {
    self.limit = limit
  }

  func addField(
    to stream: HTTP3Stream,
    name: UnsafeBufferPointer<UInt8>,
    value: UnsafeBufferPointer<UInt8>
  ) {
    if name.first == UInt8(ascii: ":") {
      stream.response.block.count(name: name, value: value)
      // A response has no other pseudo-header than :status; libnghttp3 has checked that it is three digits.
      stream.response.status = value.reduce(0) { 10 * $0 + Int($1) - 0x30 }
    } else {
      stream.response.block.add(name: name, value: value, limit: self.limit)
    }
  }

  mutating func finishHead(_ stream: HTTP3Stream) -> HTTP3Event? {
    let size = stream.response.block.size
    let fields = stream.response.block.finish()
    self.head = stream.response.takeBlock()
    if let failure = self.failure(size, stream) { return failure }
    guard stream.response.state == .head else { return nil }
    guard !(100..<200).contains(stream.response.status) else {
      stream.response.informationalCount += 1
      guard stream.response.informationalCount == InformationalResponses.limit + 1 else { return nil }
      return .failed(stream, HTTPStreamFailure(error: InformationalResponses.error), .requestCancelled)
    }
    stream.response.state = .body
    return .head(stream, HTTPResponseHead(status: stream.response.status, headers: fields))
  }

  mutating func finishTrailers(_ stream: HTTP3Stream) -> HTTP3Event? {
    let size = stream.response.block.size
    let fields = stream.response.block.finish()
    self.trailers = stream.response.takeBlock()
    if let failure = self.failure(size, stream) { return failure }
    stream.response.trailers = fields
    return nil
  }

  private func failure(_ size: Int, _ stream: HTTP3Stream) -> HTTP3Event? {
    guard size > self.limit else { return nil }
    return .failed(stream, .headerListTooLarge(size: size, limit: self.limit), .requestCancelled)
  }

  func finish(_ stream: HTTP3Stream) -> HTTP3Event? {
    guard stream.response.state != .ended else { return nil }
    stream.response.state = .ended
    let trailers = stream.response.trailers
    stream.response.trailers = Headers()
    return .end(stream, trailers: trailers)
  }

  /// The failure if libnghttp3's error means the end of this stream alone; nil if it means the end of the connection.
  static func failure(of stream: HTTP3Stream, libraryError: Int32) -> HTTPStreamFailure? {
    switch libraryError {
    case NGHTTP3_ERR_MALFORMED_HTTP_HEADER, NGHTTP3_ERR_MALFORMED_HTTP_MESSAGING:
      .malformed(stream)
    case NGHTTP3_ERR_QPACK_HEADER_TOO_LARGE:
      .headerTooLarge
    default:
      nil
    }
  }
}
