internal import NIOCore

/// The messages of `xds.service.orca.v3.OpenRcaService/StreamCoreMetrics` (gRFC A51).
enum LoadReportMessages {
  static func stream(every period: Duration) -> WatchMethod<LoadReport> {
    WatchMethod(
      path: "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics",
      request: self.request(every: period),
      // Named metrics, which are skipped, may make a report long.
      largestAnswer: 64 << 10,
      restartsAtOnce: false,
      warning: """
        the server has no load reports on a stream, or no HTTP/2 for them, so its weight is that of the others
        """,
      decode: LoadReport.init(decoding:)
    )
  }

  /// `OrcaLoadReportRequest`: how often the server should report.
  private static func request(every period: Duration) -> ByteBuffer {
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
