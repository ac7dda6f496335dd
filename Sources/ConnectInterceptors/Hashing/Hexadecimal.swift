/// Bytes as text, two digits in lower case for each byte.
enum Hexadecimal {
  private static let digits = Array("0123456789abcdef".utf8)

  static func text(_ bytes: some Collection<UInt8>) -> String {
    String(
      unsafeUninitializedCapacity: bytes.count * 2,
      initializingUTF8With: { text in
        for (index, byte) in bytes.enumerated() {
          text[index * 2] = self.digits[Int(byte >> 4)]
          text[index * 2 + 1] = self.digits[Int(byte & 0xf)]
        }
        return bytes.count * 2
      }
    )
  }
}
