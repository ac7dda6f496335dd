internal import Connect

/// An IPv4 or IPv6 address without a port.
///
/// An IPv4 address and the IPv6 address that maps it (`::ffff:192.0.2.1`) are different values;
/// ``unmapped`` makes them equal.
public struct IPAddress: Hashable, Sendable {
  /// The versions of IP: IPv4 and IPv6.
  public enum Family: Hashable, Sendable {
    /// An address of 4 bytes (`v4`) or of 16 bytes (`v6`).
    case v4, v6

    /// The size of an address, in bits.
    var bitCount: Int { self == .v4 ? 32 : 128 }
  }

  /// The version of IP that the address belongs to.
  public let family: Family
  /// The address as a number. IPv4 uses the lowest 32 bits.
  let value: UInt128
  /// The interface of a link-local IPv6 address, such as `eth0` in `fe80::1%eth0` (RFC 4007, section 11).
  public let zone: String?

  init(family: Family, value: UInt128, zone: String? = nil) {
    self.family = family
    self.value = family == .v4 ? value & 0xffff_ffff : value
    self.zone = family == .v4 ? nil : zone
  }

  /// An address from bytes in network order; nil unless there are 4 or 16.
  public init?(bytes: some Collection<UInt8>) {
    let value = bytes.prefix(16).reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
    switch bytes.count {
    case 4: self.init(family: .v4, value: value)
    case 16: self.init(family: .v6, value: value)
    default: return nil
    }
  }

  /// Parses `192.0.2.1`, `2001:db8::1` or `fe80::1%eth0`; nil for everything else.
  ///
  /// Octal, hexadecimal and shortened IPv4 addresses (`010.1`, `127.1`) are refused: programs disagree on them.
  public init?(_ text: some StringProtocol) {
    var bytes = Array(text.utf8)[...]
    guard bytes.contains(UInt8(ascii: ":")) else {
      guard let value = Self.parseIPv4(bytes) else { return nil }
      self.init(family: .v4, value: UInt128(value))
      return
    }
    var zone: String?
    if let percent = bytes.firstIndex(of: UInt8(ascii: "%")) {
      let name = bytes[(percent + 1)...]
      guard !name.isEmpty, name.allSatisfy(PercentEncoding.isUnreserved) else { return nil }
      zone = String(decoding: name, as: UTF8.self)
      bytes = bytes[..<percent]
    }
    guard let value = Self.parseIPv6(bytes) else { return nil }
    self.init(family: .v6, value: value, zone: zone)
  }

  /// The bytes in network order: 4 or 16.
  public var bytes: [UInt8] {
    (0..<self.family.bitCount / 8).reversed().map { UInt8(truncatingIfNeeded: self.value >> ($0 * 8)) }
  }

  /// The IPv4 address that an IPv6 address maps (RFC 4291, section 2.5.5.2); otherwise the address itself.
  public var unmapped: IPAddress {
    guard self.family == .v6, self.value >> 32 == 0xffff else { return self }
    return IPAddress(family: .v4, value: self.value)
  }

  /// The same address on no particular interface.
  var withoutZone: IPAddress { IPAddress(family: self.family, value: self.value) }

  static let loopbackIPv4 = IPAddress(family: .v4, value: 0x7f00_0001)
  static let loopbackIPv6 = IPAddress(family: .v6, value: 1)
}

// MARK: - Parsing

extension IPAddress {
  /// Four decimal numbers without leading zeros.
  private static func parseIPv4(_ bytes: ArraySlice<UInt8>) -> UInt32? {
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var value: UInt32 = 0
    for part in parts {
      guard part.count == 1 || part.first != UInt8(ascii: "0"), let number = ASCII.decimal(part, maximum: 255)
      else { return nil }
      value = value << 8 | UInt32(number)
    }
    return value
  }

  private static func parseIPv6(_ bytes: ArraySlice<UInt8>) -> UInt128? {
    let colon = UInt8(ascii: ":")
    var gap: Int?
    for index in bytes.indices.dropLast() where bytes[index] == colon && bytes[index + 1] == colon {
      gap = index
      break
    }
    guard let gap else {
      guard let groups = self.groups(bytes, mayEndInIPv4: true), groups.count == 8 else { return nil }
      return self.join(groups)
    }
    // A second `::` leaves an empty group in the tail, which `groups` refuses.
    guard let head = self.groups(bytes[..<gap], mayEndInIPv4: false),
      let tail = self.groups(bytes[(gap + 2)...], mayEndInIPv4: true),
      head.count + tail.count < 8
    else { return nil }
    return self.join(head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail)
  }

  private static func join(_ groups: [UInt16]) -> UInt128 {
    groups.reduce(UInt128(0)) { $0 << 16 | UInt128($1) }
  }

  /// Groups of up to four hexadecimal digits; the last may be an IPv4 address, which is two groups.
  private static func groups(_ bytes: ArraySlice<UInt8>, mayEndInIPv4: Bool) -> [UInt16]? {
    guard !bytes.isEmpty else { return [] }
    var groups: [UInt16] = []
    let parts = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count <= 8 else { return nil }
    for (index, part) in parts.enumerated() {
      if mayEndInIPv4, index == parts.count - 1, part.contains(UInt8(ascii: ".")) {
        guard let value = self.parseIPv4(part) else { return nil }
        groups.append(UInt16(value >> 16))
        groups.append(UInt16(truncatingIfNeeded: value))
        continue
      }
      guard (1...4).contains(part.count) else { return nil }
      var value: UInt16 = 0
      for byte in part {
        guard let digit = PercentEncoding.value(byte) else { return nil }
        value = value << 4 | UInt16(digit)
      }
      groups.append(value)
    }
    return groups
  }
}

// MARK: - Text

extension IPAddress: CustomStringConvertible {
  /// The text form; for IPv6 the canonical one (RFC 5952).
  public var description: String {
    switch self.family {
    case .v4: Self.dotted(self.value)
    case .v6: self.textIPv6 + (self.zone.map { "%\($0)" } ?? "")
    }
  }

  private static func dotted(_ value: UInt128) -> String {
    [24, 16, 8, 0].map { String(UInt8(truncatingIfNeeded: value >> $0)) }.joined(separator: ".")
  }

  private var textIPv6: String {
    if self.value >> 32 == 0xffff { return "::ffff:" + Self.dotted(self.value) }
    let groups = (0..<8).reversed().map { UInt16(truncatingIfNeeded: self.value >> ($0 * 16)) }
    var longest = 0..<0
    var start = 0
    for index in 0...8 where index == 8 || groups[index] != 0 {
      if index - start > longest.count { longest = start..<index }
      start = index + 1
    }
    func text(_ part: ArraySlice<UInt16>) -> String {
      part.map { String($0, radix: 16) }.joined(separator: ":")
    }
    guard longest.count > 1 else { return text(groups[...]) }
    return text(groups[..<longest.lowerBound]) + "::" + text(groups[longest.upperBound...])
  }
}
