/// The authentication code HMAC-SHA256, RFC 2104.
enum HMAC {
  /// The 32 bytes of the code of `message`.
  static func code(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var block = key.count > SHA256.blockSize ? self.hash(key) : key
    block.append(contentsOf: repeatElement(0, count: SHA256.blockSize - block.count))
    return self.hash(block.map { $0 ^ 0x5c }, self.hash(block.map { $0 ^ 0x36 }, message))
  }

  private static func hash(_ parts: [UInt8]...) -> [UInt8] {
    var hash = SHA256()
    for part in parts { part.withUnsafeBytes { hash.update($0) } }
    return hash.digest()
  }
}
