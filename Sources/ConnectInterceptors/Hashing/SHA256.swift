internal import NIOCore

/// The hash function SHA-256, FIPS 180-4, section 6.2.
///
/// Implemented here, since none of the package's dependencies has it. swift-crypto 4.5 compiles BoringSSL: six modules and
/// 115 seconds more in a clean debug build on two cores.
///
/// Its time depends on the number of bytes alone, not on what they are: it neither branches on them nor looks them up in
/// a table.
struct SHA256: Sendable {
  /// The bytes that are hashed at a time.
  static let blockSize = 64

  private var state = Self.initialState
  private var count = 0
  /// What does not fill a block yet.
  private var tail: [UInt8] = []

  /// The hash of `bytes` as 64 hexadecimal digits in lower case.
  static func hexadecimal(_ bytes: ByteBuffer) -> String { Hexadecimal.text(self.digest(bytes)) }

  /// The 32 bytes of the hash.
  static func digest(_ bytes: ByteBuffer) -> [UInt8] {
    var hash = SHA256()
    hash.update(bytes)
    return hash.digest()
  }

  mutating func update(_ bytes: ByteBuffer) {
    bytes.withUnsafeReadableBytes { self.update($0) }
  }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    self.count += bytes.count
    var rest = bytes[...]
    if !self.tail.isEmpty {
      let piece = rest.prefix(Self.blockSize - self.tail.count)
      self.tail.append(contentsOf: piece)
      rest = rest.dropFirst(piece.count)
      guard self.tail.count == Self.blockSize else { return }
      self.tail.withUnsafeBytes { Self.process($0, into: &self.state) }
      self.tail.removeAll(keepingCapacity: true)
    }
    while rest.count >= Self.blockSize {
      Self.process(UnsafeRawBufferPointer(rebasing: rest.prefix(Self.blockSize)), into: &self.state)
      rest = rest.dropFirst(Self.blockSize)
    }
    self.tail.append(contentsOf: rest)
  }

  /// The 32 bytes of the hash of everything so far.
  consuming func digest() -> [UInt8] {
    // A 1 bit, zeros, and the length in bits.
    let length = UInt64(self.count) << 3
    let zeros = (119 - self.count & 63) & 63
    var padding: [UInt8] = [0x80]
    padding.append(contentsOf: repeatElement(0, count: zeros))
    withUnsafeBytes(of: length.bigEndian) { padding.append(contentsOf: $0) }
    padding.withUnsafeBytes { self.update($0) }
    return self.state.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
  }

  /// - Parameter block: 64 bytes.
  private static func process(_ block: UnsafeRawBufferPointer, into state: inout [UInt32]) {
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
      for index in 0..<16 {
        schedule[index] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: index * 4, as: UInt32.self))
      }
      for index in 16..<64 {
        let (early, late) = (schedule[index - 15], schedule[index - 2])
        let sigma0 = early.rotated(7) ^ early.rotated(18) ^ (early >> 3)
        let sigma1 = late.rotated(17) ^ late.rotated(19) ^ (late >> 10)
        schedule[index] = schedule[index - 16] &+ sigma0 &+ schedule[index - 7] &+ sigma1
      }
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      var (e, f, g, h) = (state[4], state[5], state[6], state[7])
      for index in 0..<64 {
        let sum1 = e.rotated(6) ^ e.rotated(11) ^ e.rotated(25)
        let choice = (e & f) ^ (~e & g)
        let first = h &+ sum1 &+ choice &+ self.constants[index] &+ schedule[index]
        let sum0 = a.rotated(2) ^ a.rotated(13) ^ a.rotated(22)
        let majority = (a & b) ^ (a & c) ^ (b & c)
        (h, g, f, e) = (g, f, e, d &+ first)
        (d, c, b, a) = (c, b, a, first &+ sum0 &+ majority)
      }
      for (index, word) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= word }
    }
  }

  /// Section 5.3.3.
  private static let initialState: [UInt32] = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
  ]

  /// Section 4.2.2.
  private static let constants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
  ]
}

extension UInt32 {
  fileprivate func rotated(_ count: UInt32) -> UInt32 {
    (self >> count) | (self << (32 - count))
  }
}
