internal import Connect
internal import NIOCore

/// Writes `google.rpc.Status`, whose three fields are all that a server needs of it.
/// <https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto>
enum GRPCStatusBytes {
  static func encode(_ error: ConnectError) -> ByteBuffer {
    var status = ByteBuffer(bytes: [1 << 3, UInt8(error.code.rawValue)])
    self.add(2, ByteBuffer(string: error.message ?? ""), to: &status)
    for detail in error.details {
      var any = ByteBuffer()
      self.add(1, ByteBuffer(string: "type.googleapis.com/" + detail.type), to: &any)
      self.add(2, detail.value, to: &any)
      self.add(3, any, to: &status)
    }
    return status
  }

  /// Adds a field of bytes.
  private static func add(_ field: UInt8, _ value: ByteBuffer, to message: inout ByteBuffer) {
    message.writeInteger(field << 3 | 2)
    var length = value.readableBytes
    while length > 0x7f {
      message.writeInteger(UInt8(length & 0x7f) | 0x80)
      length >>= 7
    }
    message.writeInteger(UInt8(length))
    message.writeImmutableBuffer(value)
  }
}
