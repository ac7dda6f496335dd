import NIOCore
import TestSupport

@testable import Connect

/// Inputs for decoders.
extension SeededGenerator {
  /// Changes, removes or repeats a part of `bytes`.
  mutating func damage(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let index = Int.random(in: 0..<bytes.count, using: &self)
    switch Int.random(in: 0..<6, using: &self) {
    case 0: bytes[index] = self.byte()
    case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &self)
    case 2: bytes.removeSubrange(index...)
    case 3: bytes.remove(at: index)
    case 4: bytes.insert(Array(#"{}[]",:0"\"#.utf8).randomElement(using: &self) ?? 0, at: index)
    default: bytes.insert(contentsOf: bytes[index...].prefix(50), at: index)
    }
  }

  /// Bytes, envelopes of which some lie about their length, ``text()``, or base64 of one of these.
  mutating func body() -> [UInt8] {
    let count = Int.random(in: 0...Int.random(in: 0...600, using: &self), using: &self)
    switch Int.random(in: 0..<5, using: &self) {
    case 0, 1:
      return self.bytes(count)
    case 2:
      var body: [UInt8] = []
      while body.count < count { body += self.envelope() }
      return body
    case 3:
      return Array(self.text().utf8)
    default:
      let inner = ByteBuffer(bytes: self.body())
      return Array(Base64.encode(inner, alphabet: .standard, isPadded: true).readableBytesView)
    }
  }

  private mutating func envelope() -> [UInt8] {
    let flags: [UInt8] = [0, 1, 2, 3, 0x80, 0x81, self.byte()]
    let message = self.bytes(Int.random(in: 0...40, using: &self))
    let lie = Int.random(in: 0..<6, using: &self) == 0 ? Int.random(in: -5...500, using: &self) : 0
    let length = UInt32(max(0, message.count + lie))
    return [flags.randomElement(using: &self) ?? 0] + withUnsafeBytes(of: length.bigEndian) { Array($0) }
      + message
  }

  /// What looks a little like JSON, or like trailers.
  mutating func text() -> String {
    let words = [
      "{", "}", "[", "]", "\"", ":", ",", "\\u", "null", "\"error\"", "\"code\"", "\"message\"",
      "\"details\"", "\"metadata\"", "aborted", "grpc-status", "grpc-message", "\r\n", " ", "0", "16",
      "1e999", "-", "%", "%4", "=", "AAEC", "ü", "\u{0}",
    ]
    return (0..<Int.random(in: 0...30, using: &self)).map { _ in
      words.randomElement(using: &self) ?? ""
    }.joined()
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in self.byte() }
  }

  private mutating func byte() -> UInt8 {
    UInt8.random(in: 0...255, using: &self)
  }
}
