#if Snappy
/// Snappy's framing format: <https://github.com/google/snappy/blob/main/framing_format.txt>.
enum SnappyFrame {
  static let compressedChunk: UInt8 = 0x00
  static let uncompressedChunk: UInt8 = 0x01
  /// What a chunk holds at most before compression, in bytes.
  static let maximumChunkSize = 65_536
  /// The chunk that begins each stream.
  static let streamIdentifier: [UInt8] = [0xff, 6, 0, 0] + Array("sNaPpY".utf8)

  /// The masked CRC-32C of `bytes`.
  static func checksum(of bytes: UnsafeRawBufferPointer) -> UInt32 {
    let crc = CRC32C.checksum(of: bytes)
    return (crc >> 15 | crc << 17) &+ 0xa282_ead8
  }
}

/// The cyclic redundancy check with Castagnoli's polynomial, RFC 3720, appendix B.4.
enum CRC32C {
  private static let table: [UInt32] = (0..<256).map { index in
    var value = UInt32(index)
    for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0x82f6_3b78 : value >> 1 }
    return value
  }

  static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
    self.table.withUnsafeBufferPointer { table in
      ~bytes.reduce(~0) { crc, byte in crc >> 8 ^ table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] }
    }
  }
}
#endif
