/// A range of addresses with a common prefix, such as `10.0.0.0/8` (CIDR, RFC 4632 and RFC 4291, section 2.3).
package struct IPNetwork: Hashable, Sendable {
  /// The first address of the range.
  package let address: IPAddress
  /// How many leading bits are the same in all addresses: 0 to 32, for IPv6 to 128.
  package let prefixLength: Int

  private let mask: UInt128

  /// - Returns: Nil if the prefix is longer than the address.
  package init?(_ address: IPAddress, prefixLength: Int) {
    let bits = address.family.bitCount
    guard (0...bits).contains(prefixLength) else { return nil }
    // A shift by the full width gives zero.
    self.mask = ~UInt128(0) << (bits - prefixLength)
    self.address = IPAddress(family: address.family, value: address.value & self.mask)
    self.prefixLength = prefixLength
  }

  /// Parses `192.0.2.0/24` and `2001:db8::/32`. Bits behind the prefix are ignored.
  package init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let address = IPAddress(parts[0]), address.zone == nil,
      let length = ASCII.decimal(parts[1].utf8, maximum: 128)
    else { return nil }
    self.init(address, prefixLength: length)
  }

  /// Whether the address is in the range. Mapped IPv4 addresses count as IPv4.
  package func contains(_ address: IPAddress) -> Bool {
    if address.family == self.address.family { return address.value & self.mask == self.address.value }
    let unmapped = address.unmapped
    return unmapped.family == self.address.family && unmapped.value & self.mask == self.address.value
  }
}

extension IPNetwork: CustomStringConvertible {
  package var description: String { "\(self.address)/\(self.prefixLength)" }
}
