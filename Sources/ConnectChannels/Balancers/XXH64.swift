/// The hash XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): the one of ring hash in gRPC and
/// Envoy. Clients in all languages find the same server for a key if their rings have the same size.
enum XXH64 {
  private static let prime1: UInt64 = 0x9e37_79b1_85eb_ca87
  private static let prime2: UInt64 = 0xc2b2_ae3d_27d4_eb4f
  private static let prime3: UInt64 = 0x1656_67b1_9e37_79f9
  private static let prime4: UInt64 = 0x85eb_ca77_c2b2_ae63
  private static let prime5: UInt64 = 0x27d4_eb2f_1656_67c5

  /// The hash of the UTF-8 of `text`.
  static func hash(_ text: String, seed: UInt64 = 0) -> UInt64 {
    var text = text
    return text.withUTF8 { self.hash(UnsafeRawBufferPointer($0), seed: seed) }
  }

  static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
    var offset = 0
    var hash: UInt64
    if bytes.count >= 32 {
      hash = self.hashStripes(bytes, seed: seed, offset: &offset)
    } else {
      hash = seed &+ self.prime5
    }
    hash &+= UInt64(bytes.count)
    while offset + 8 <= bytes.count {
      hash ^= self.round(0, self.word(bytes, offset))
      hash = self.rotate(hash, 27) &* self.prime1 &+ self.prime4
      offset += 8
    }
    if offset + 4 <= bytes.count {
      let half = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
      hash ^= UInt64(half) &* self.prime1
      hash = self.rotate(hash, 23) &* self.prime2 &+ self.prime3
      offset += 4
    }
    while offset < bytes.count {
      hash ^= UInt64(bytes[offset]) &* self.prime5
      hash = self.rotate(hash, 11) &* self.prime1
      offset += 1
    }
    hash = (hash ^ (hash >> 33)) &* self.prime2
    hash = (hash ^ (hash >> 29)) &* self.prime3
    return hash ^ (hash >> 32)
  }

  /// Four lanes of 8 bytes each, for all that is a multiple of 32 bytes.
  private static func hashStripes(_ bytes: UnsafeRawBufferPointer, seed: UInt64, offset: inout Int) -> UInt64
  {
    var lane1 = seed &+ self.prime1 &+ self.prime2
    var lane2 = seed &+ self.prime2
    var lane3 = seed
    var lane4 = seed &- self.prime1
    while offset + 32 <= bytes.count {
      lane1 = self.round(lane1, self.word(bytes, offset))
      lane2 = self.round(lane2, self.word(bytes, offset + 8))
      lane3 = self.round(lane3, self.word(bytes, offset + 16))
      lane4 = self.round(lane4, self.word(bytes, offset + 24))
      offset += 32
    }
    var hash =
      self.rotate(lane1, 1) &+ self.rotate(lane2, 7) &+ self.rotate(lane3, 12) &+ self.rotate(lane4, 18)
    hash = self.merge(hash, lane1)
    hash = self.merge(hash, lane2)
    hash = self.merge(hash, lane3)
    return self.merge(hash, lane4)
  }

  @inline(__always)
  private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
    value &<< bits | value &>> (64 &- bits)
  }

  @inline(__always)
  private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
    self.rotate(lane &+ word &* self.prime2, 31) &* self.prime1
  }

  @inline(__always)
  private static func merge(_ hash: UInt64, _ lane: UInt64) -> UInt64 {
    (hash ^ self.round(0, lane)) &* self.prime1 &+ self.prime4
  }
}
