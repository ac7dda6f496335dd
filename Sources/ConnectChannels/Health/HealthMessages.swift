internal import Connect
internal import NIOCore

/// The messages of `grpc.health.v1.Health/Watch`
/// (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).
package enum HealthMessages {
  static func watch(service: String) -> WatchMethod<HealthStatus> {
    WatchMethod(
      path: "/grpc.health.v1.Health/Watch",
      request: self.request(service: service),
      // A health answer has only a few bytes, so a larger one is something else.
      largestAnswer: 1 << 10,
      restartsAtOnce: true,
      warning: "the server has no health service, or no HTTP/2 for it, so its health is not watched",
      decode: self.status(decoding:)
    )
  }

  /// `HealthCheckRequest`.
  private static func request(service: String) -> ByteBuffer {
    var message = ByteBuffer()
    guard !service.isEmpty else { return message }
    message.writeInteger(UInt8(0x0a))
    message.writeVarint(UInt64(service.utf8.count))
    message.writeString(service)
    return message
  }

  /// `HealthCheckResponse`; nil if the bytes are something else.
  package static func status(decoding bytes: [UInt8]) -> HealthStatus? {
    var reader = ProtobufReader(ByteBuffer(bytes: bytes))
    var status = HealthStatus.unknown
    while let field = reader.next() {
      // A status that this code does not know is not SERVING.
      if case (1, .varint(let code)) = field {
        status = Int(exactly: code).flatMap(HealthStatus.init) ?? .unknown
      }
    }
    return reader.isAtEnd ? status : nil
  }
}
