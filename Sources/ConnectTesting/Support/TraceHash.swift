/// A number for all that has happened, in its order: FNV-1a of 64 bits.
///
/// Two runs with the same hash have, as far as anybody can tell, done the same.
package struct TraceHash {
  package private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  package init() {}

  package mutating func add(_ number: UInt64) {
    var number = number
    for _ in 0..<8 {
      self.value = (self.value ^ (number & 0xff)) &* 0x0000_0100_0000_01b3
      number >>= 8
    }
  }

  package mutating func add(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.add(UInt64(bitPattern: seconds))
    self.add(UInt64(bitPattern: attoseconds))
  }

  package mutating func add(_ text: String) {
    for byte in text.utf8 { self.value = (self.value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    // Separates texts: two texts must not hash like their concatenation.
    self.value = (self.value ^ 0xff) &* 0x0000_0100_0000_01b3
  }
}
