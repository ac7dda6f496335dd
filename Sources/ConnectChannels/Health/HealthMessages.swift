internal import NIOCore

/// The messages of `grpc.health.v1.Health/Watch`
/// (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).
enum HealthMessages {
  static let path = "/grpc.health.v1.Health/Watch"
  /// The largest answer, in bytes. A health answer has only a few bytes, so a larger one is something else.
  static let largestAnswer = 1 << 10

  /// `HealthCheckRequest`.
  static func request(service: String) -> ByteBuffer {
    var message = ByteBuffer()
    guard !service.isEmpty else { return message }
    message.writeInteger(UInt8(0x0a))
    message.writeVarint(UInt64(service.utf8.count))
    message.writeString(service)
    return message
  }

  /// `HealthCheckResponse`; nil if the bytes are something else.
  static func status(decoding bytes: [UInt8]) -> HealthStatus? {
    var reader = ProtobufReader(bytes[...])
    var status = HealthStatus.unknown
    while !reader.isAtEnd {
      guard let (number, value) = reader.next() else { return nil }
      // A status that this code does not know is not SERVING.
      if number == 1, case .varint(let code) = value {
        status = Int(exactly: code).flatMap(HealthStatus.init) ?? .unknown
      }
    }
    return status
  }
}
