internal import NIOCore

/// Turns a call's request messages into pieces of the body: checks their size, compresses those that are worth
/// it, and frames them.
struct MessageFramer {
  private let wire: any WireProtocol
  private let streamType: StreamType
  private let pool: (any CompressionPool)?
  private let minimumCompressedBytes: Int
  private let maximumSize: Int?

  init(
    wire: any WireProtocol,
    streamType: StreamType,
    compression: Compression,
    requestCompression: RequestCompression,
    maximumSize: Int?
  ) {
    self.wire = wire
    self.streamType = streamType
    self.minimumCompressedBytes = compression.minimumRequestBytes
    self.maximumSize = maximumSize
    switch requestCompression {
    case .inherited: self.pool = compression.requests
    case .none: self.pool = nil
    case .pool(let pool): self.pool = pool
    }
  }

  /// A message as it goes into the body.
  struct Payload {
    var bytes: ByteBuffer
    var isCompressed: Bool
  }

  /// The encoding that the request's headers have to name for a body of `payload`, or, without one, of enveloped
  /// messages that are yet to come.
  func encoding(for payload: Payload?) -> String? {
    guard let pool = self.pool else { return nil }
    if self.wire.envelopesMessages(of: self.streamType) { return pool.name }
    return payload?.isCompressed == true ? pool.name : nil
  }

  /// - Throws: ``ConnectError`` with `resource_exhausted` if a message of so many bytes is over the limit.
  static func check(_ size: Int, limit: Int?) throws(ConnectError) {
    guard let limit, size > limit else { return }
    throw MessageSizeErrors.sent(size, limit: limit)
  }

  /// - Throws: ``ConnectError``: `resource_exhausted` if the message is over the limit, `internal` if it cannot be
  ///   compressed.
  func payload(of message: consuming ByteBuffer) throws(ConnectError) -> Payload {
    let size = message.readableBytes
    try Self.check(size, limit: self.maximumSize)
    guard let pool = self.pool, size >= self.minimumCompressedBytes else {
      return Payload(bytes: message, isCompressed: false)
    }
    do {
      return Payload(bytes: try pool.compress(message), isCompressed: true)
    } catch let error as ConnectError {
      throw error
    } catch {
      throw ConnectError(
        code: .internalError,
        message: "message to send could not be compressed as \(pool.name): \(error)",
        exception: error
      )
    }
  }

  func frame(_ payload: consuming Payload) -> ByteBuffer {
    // Moved out, so that the bytes have no other reference and are framed in place.
    var bytes = ByteBuffer()
    swap(&bytes, &payload.bytes)
    return self.wire.frame(bytes, isCompressed: payload.isCompressed, streamType: self.streamType)
  }
}
