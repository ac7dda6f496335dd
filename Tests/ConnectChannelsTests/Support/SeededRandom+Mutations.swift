import ConnectChannels
import Foundation

/// The number of random inputs in a test that mutates valid input. `CONNECT_FUZZ_ROUNDS` sets another number.
let fuzzRounds = ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap(Int.init) ?? 5_000

extension SeededRandom {
  /// The bytes with a few random changes: other bytes, cuts, insertions, repetitions.
  mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &self) {
      let index = Int.random(in: 0...bytes.count, using: &self)
      switch Int.random(in: 0..<6, using: &self) {
      case 0 where index < bytes.count: bytes[index] = .random(in: 0 ... .max, using: &self)
      case 1 where index < bytes.count: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &self)
      case 2: bytes.removeLast(bytes.count - index)
      case 3: bytes.insert(.random(in: 0 ... .max, using: &self), at: index)
      case 4: bytes.insert(contentsOf: bytes.prefix(Int.random(in: 0...20, using: &self)), at: index)
      case 5 where index < bytes.count:
        bytes[index] = [0, 0xc0, 0xff, 0x7f, 0x80].randomElement(using: &self) ?? 0
      default: break
      }
    }
    return bytes
  }
}
