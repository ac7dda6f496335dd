internal import NIOCore

/// The messages of `grpc.health.v1.Health/Watch`
/// (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>), in gRPC's frames.
enum HealthMessages {
  static let path = "/grpc.health.v1.Health/Watch"
  /// A response is some bytes; one that says to be larger than this comes from something else.
  static let largestResponse = 1 << 10

  /// `HealthCheckRequest`, in a frame.
  static func request(service: String) -> ByteBuffer {
    var message = ByteBuffer()
    if !service.isEmpty {
      message.writeInteger(UInt8(0x0a))
      var count = service.utf8.count
      while count >= 0x80 {
        message.writeInteger(UInt8(truncatingIfNeeded: count) | 0x80)
        count >>= 7
      }
      message.writeInteger(UInt8(count))
      message.writeString(service)
    }
    var frame = ByteBuffer()
    frame.writeInteger(UInt8(0))
    frame.writeInteger(UInt32(message.readableBytes))
    frame.writeBuffer(&message)
    return frame
  }

  /// Takes the next response out of `bytes`.
  ///
  /// - Returns: Nil if it is not there as a whole yet.
  /// - Throws: ``InvalidResponse`` if the bytes are something else.
  static func takeResponse(from bytes: inout ByteBuffer) throws(InvalidResponse) -> HealthStatus? {
    guard let flags: UInt8 = bytes.getInteger(at: bytes.readerIndex),
      let size: UInt32 = bytes.getInteger(at: bytes.readerIndex + 1)
    else { return nil }
    guard flags == 0, size <= self.largestResponse else { throw InvalidResponse() }
    guard bytes.readableBytes >= 5 + Int(size) else { return nil }
    bytes.moveReaderIndex(forwardBy: 5)
    guard let message = bytes.readBytes(length: Int(size)) else { return nil }
    var reader = ProtobufReader(message[...])
    var status = HealthStatus.unknown
    while !reader.isAtEnd {
      guard let (number, value) = reader.next() else { throw InvalidResponse() }
      // A status that is newer than this code is no SERVING.
      if number == 1, case .varint(let code) = value {
        status = Int(exactly: code).flatMap(HealthStatus.init) ?? .unknown
      }
    }
    return status
  }

  struct InvalidResponse: Error {}
}
