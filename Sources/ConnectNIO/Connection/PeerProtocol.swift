internal import NIOCore

/// The protocol that a peer speaks, as the first bytes that it sends show.
enum PeerProtocol {
  case http1
  case http2
  case tls

  /// Nil if `bytes` show none of these, or are too few for that.
  init?(_ bytes: ByteBuffer) {
    let bytes = bytes.readableBytesView
    if bytes.starts(with: "HTTP/".utf8) {
      self = .http1
    } else if Self.isSettings(bytes.prefix(9)) {
      self = .http2
    } else if Self.isRecord(bytes.prefix(3)) {
      self = .tls
    } else {
      return nil
    }
  }

  /// The head of a SETTINGS frame, with which every peer begins (RFC 9113, sections 3.4 and 6.5).
  private static func isSettings(_ bytes: ByteBufferView) -> Bool {
    let head = Array(bytes)
    guard head.count == 9, head[3...] == [4, 0, 0, 0, 0, 0] else { return false }
    return head[0] == 0 && (Int(head[1]) << 8 | Int(head[2])) % 6 == 0
  }

  /// The head of a record: an alert or another type, and the version (RFC 8446, section 5.1).
  private static func isRecord(_ bytes: ByteBufferView) -> Bool {
    let head = Array(bytes)
    return head.count == 3 && (20...23).contains(head[0]) && head[1] == 3 && head[2] <= 4
  }
}
