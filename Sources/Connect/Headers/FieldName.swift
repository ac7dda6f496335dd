/// The names of fields.
enum FieldName {
  /// Whether a field may have this name: a token (RFC 9110, section 5.1). Names of pseudo-headers are none.
  static func isToken(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { bytes in !bytes.isEmpty && !bytes.hasByte { self.isForbiddenInToken($0) } }
  }

  /// Whether the value of a field with this name (in lower case) is base64: the name ends with `-bin`.
  ///
  /// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>
  static func isBinary(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { bytes in
      let count = bytes.count
      return count >= 4 && bytes[count - 1] == UInt8(ascii: "n") && bytes[count - 2] == UInt8(ascii: "i")
        && bytes[count - 3] == UInt8(ascii: "b") && bytes[count - 4] == UInt8(ascii: "-")
    }
  }

  /// Neither a letter, nor a digit, nor one of !#$%&'*+-.^_`|~. The masks have a bit for each byte.
  @inline(__always)
  private static func isForbiddenInToken(_ byte: UInt8) -> ByteTest {
    let bits: UInt64 = byte < 64 ? 0x03ff_6cfa_0000_0000 : 0x57ff_ffff_c7ff_fffe
    return ByteTest(byte >= 128) | ByteTest(bits &>> UInt64(byte & 63) & 1 == 0)
  }
}
