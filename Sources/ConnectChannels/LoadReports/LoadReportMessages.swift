internal import NIOCore

/// The messages of `xds.service.orca.v3.OpenRcaService/StreamCoreMetrics` (gRFC A51).
enum LoadReportMessages {
  static let path = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
  /// Named metrics, which are skipped, may make a report long.
  static let largestAnswer = 64 << 10

  /// `OrcaLoadReportRequest`: how often the server should report.
  static func request(every period: Duration) -> ByteBuffer {
    let (seconds, attoseconds) = period.components
    var interval = ByteBuffer()
    if seconds > 0 {
      interval.writeInteger(UInt8(0x08))
      interval.writeVarint(UInt64(seconds))
    }
    let nanoseconds = attoseconds / 1_000_000_000
    if nanoseconds > 0 {
      interval.writeInteger(UInt8(0x10))
      interval.writeVarint(UInt64(nanoseconds))
    }
    var message = ByteBuffer()
    message.writeInteger(UInt8(0x0a))
    message.writeVarint(UInt64(interval.readableBytes))
    message.writeBuffer(&interval)
    return message
  }
}
