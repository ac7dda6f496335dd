internal import Connect
internal import NIOCore

extension LoadReport {
  /// Decodes `xds.data.orca.v3.OrcaLoadReport` from protobuf's binary format
  /// (<https://github.com/cncf/xds/blob/main/xds/data/orca/v3/orca_load_report.proto>). The maps of named metrics are
  /// skipped. A number that the message does not have is zero.
  ///
  /// - Returns: Nil if the bytes are no protobuf message, or a number is negative, infinite or not a number.
  package init?(decoding bytes: [UInt8]) {
    self.init()
    var reader = ProtobufReader(ByteBuffer(bytes: bytes))
    var wholeQueries: UInt64 = 0
    while let field = reader.next() {
      switch field {
      case (1, .fixed64(let bits)): self.cpuUtilization = Double(bitPattern: bits)
      case (2, .fixed64(let bits)): self.memoryUtilization = Double(bitPattern: bits)
      case (3, .varint(let count)): wholeQueries = count
      case (6, .fixed64(let bits)): self.queriesPerSecond = Double(bitPattern: bits)
      case (7, .fixed64(let bits)): self.errorsPerSecond = Double(bitPattern: bits)
      case (9, .fixed64(let bits)): self.applicationUtilization = Double(bitPattern: bits)
      default: continue
      }
    }
    guard reader.isAtEnd else { return nil }
    // The deprecated field `rps`, where a server sends only that.
    if self.queriesPerSecond == 0 { self.queriesPerSecond = Double(wholeQueries) }
    let numbers = [
      self.cpuUtilization, self.memoryUtilization, self.applicationUtilization, self.queriesPerSecond,
      self.errorsPerSecond,
    ]
    guard numbers.allSatisfy({ $0.isFinite && $0 >= 0 }) else { return nil }
  }
}
