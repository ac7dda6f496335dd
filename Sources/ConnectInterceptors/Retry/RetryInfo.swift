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
    var reader = ProtobufReader(bytes)
    var delay: Duration?
    while let field = reader.next() {
      guard case (1, .bytes(let value)) = field else { continue }
      guard let duration = try? Google_Protobuf_Duration(serializedBytes: Array(value.readableBytesView))
      else {
        return nil
      }
      delay = .seconds(duration.seconds) + .nanoseconds(Int64(duration.nanos))
    }
    return reader.isAtEnd ? delay : nil
  }
}
