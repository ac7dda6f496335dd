internal import NIOCore

/// The messages of `grpc.health.v1.Health/Watch`
/// (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).
enum HealthMessages {
  static let path = "/grpc.health.v1.Health/Watch"
  /// An answer is some bytes; one that says to be larger than this comes from something else.
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
      // A status that is newer than this code is no SERVING.
      if number == 1, case .varint(let code) = value {
        status = Int(exactly: code).flatMap(HealthStatus.init) ?? .unknown
      }
    }
    return status
  }
}
