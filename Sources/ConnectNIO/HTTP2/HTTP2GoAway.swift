internal import CNghttp2
internal import Connect

/// The content of a GOAWAY frame (RFC 9113, section 6.8), received or sent.
struct HTTP2GoAway {
  /// The most bytes of the debug data that are kept.
  private static let debugDataLimit = 256

  /// Streams with larger identifiers were not processed.
  var lastStreamID: Int32
  var errorCode: HTTP2ErrorCode
  /// What the sender had to say, for people, without control characters.
  var debugData: String

  init(_ frame: nghttp2_goaway) {
    self.lastStreamID = frame.last_stream_id
    self.errorCode = HTTP2ErrorCode(rawValue: frame.error_code)
    self.debugData = PeerText.value(
      String(
        decoding: UnsafeBufferPointer(
          start: UnsafePointer(frame.opaque_data),
          count: frame.opaque_data == nil ? 0 : min(frame.opaque_data_len, Self.debugDataLimit)
        ),
        as: UTF8.self
      )
    )
  }
}

extension HTTP2GoAway: CustomStringConvertible {
  var description: String {
    self.debugData.isEmpty ? "\(self.errorCode)" : "\(self.errorCode): \(self.debugData)"
  }
}
