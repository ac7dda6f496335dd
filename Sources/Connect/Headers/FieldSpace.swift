/// White space around the value of a field: spaces and tabs (RFC 9110, section 5.6.3).
///
/// It is no part of the value (RFC 9110, section 5.5), so it is removed once, where ``Headers`` are made from what a peer
/// has sent. HTTP/2 calls a response with such a field malformed (RFC 9113, section 8.2.1). But deployed servers, grpcio
/// among them, send what their applications give them, and proxies pass it on. To refuse it would cost a call whose
/// meaning is clear. Over HTTP/3, libnghttp3 leaves such a field out before anybody sees it.
package enum FieldSpace {
  @inline(__always)
  static func contains(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  /// The bytes without the white space at both ends.
  package static func trim(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
    var (start, end) = (0, bytes.count)
    guard end > 0, self.contains(bytes[0]) || self.contains(bytes[end - 1]) else { return bytes }
    while start < end, self.contains(bytes[start]) { start += 1 }
    while start < end, self.contains(bytes[end - 1]) { end -= 1 }
    return UnsafeBufferPointer(rebasing: bytes[start..<end])
  }

  /// The text without the white space at both ends; the same storage if there is none.
  package static func trim(_ text: String) -> String {
    guard let first = text.utf8.first, let last = text.utf8.last, self.contains(first) || self.contains(last)
    else { return text }
    return String(self.trim(text[...]))
  }

  static func trim(_ text: Substring) -> Substring {
    var utf8 = text.utf8
    while let first = utf8.first, self.contains(first) { utf8.removeFirst() }
    while let last = utf8.last, self.contains(last) { utf8.removeLast() }
    return Substring(utf8)
  }
}
