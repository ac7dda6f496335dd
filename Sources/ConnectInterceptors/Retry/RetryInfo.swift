internal import Connect
internal import NIOCore
private import SwiftProtobuf

/// `google.rpc.RetryInfo`, read without a generated type: a `google.protobuf.Duration` in field 1.
///
/// <https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto>
enum RetryInfo {
  private static let type = "google.rpc.RetryInfo"

  /// The delay of the first detail of this type; nil if there is none that can be read.
  static func delay(in details: [ConnectError.Detail]) -> Duration? {
    for detail in details where detail.type == Self.type {
      return self.delay(detail.value)
    }
    return nil
  }

  private static func delay(_ bytes: ByteBuffer) -> Duration? {
    var bytes = bytes
    var delay: Duration?
    while bytes.readableBytes > 0 {
      guard let tag = self.readVarint(&bytes), let value = self.readValue(&bytes, wireType: tag & 7) else {
        return nil
      }
      guard tag == 1 << 3 | 2 else { continue }
      guard let duration = try? Google_Protobuf_Duration(serializedBytes: Array(value.readableBytesView))
      else {
        return nil
      }
      delay = .seconds(duration.seconds) + .nanoseconds(Int64(duration.nanos))
    }
    return delay
  }

  /// The bytes of a field; nil if they are not all there or of a kind that proto3 does not have.
  private static func readValue(_ bytes: inout ByteBuffer, wireType: UInt64) -> ByteBuffer? {
    switch wireType {
    case 0: return self.readVarint(&bytes).map { _ in ByteBuffer() }
    case 1: return bytes.readSlice(length: 8)
    case 2:
      guard let length = self.readVarint(&bytes).flatMap(Int.init(exactly:)) else { return nil }
      return bytes.readSlice(length: length)
    case 5: return bytes.readSlice(length: 4)
    default: return nil
    }
  }

  private static func readVarint(_ bytes: inout ByteBuffer) -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: UInt64.bitWidth, by: 7) {
      guard let byte = bytes.readInteger(as: UInt8.self) else { return nil }
      value |= UInt64(byte & 0x7f) << UInt64(shift)
      if byte < 0x80 { return value }
    }
    return nil
  }
}
