/// Where a server of a virtual machine, or of its host, listens (vsock(7)).
package struct VsockPort: Sendable, Hashable {
  /// Which machine: 1 for this one, 2 for the host, from 3 on for virtual machines.
  package var cid: UInt32
  /// The port, which has nothing to do with ports of TCP.
  package var port: UInt32

  package init(cid: UInt32, port: UInt32) {
    self.cid = cid
    self.port = port
  }

  /// What a text has to be that ``init(_:)`` refuses.
  package static let form = "vsock:CID:PORT, two numbers from 0 to 4294967294, as in vsock:3:50051"

  /// The port in `CID:PORT`; nil if it is not two decimal numbers below 2^32 - 1, which means any machine or port.
  package init?(_ text: some StringProtocol) {
    let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count == 2, let cid = Self.number(parts[0]), let port = Self.number(parts[1]) else {
      return nil
    }
    self.init(cid: cid, port: port)
  }

  private static func number(_ digits: some Sequence<UInt8>) -> UInt32? {
    var value: UInt32?
    for byte in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      let (product, isTooLarge) = (value ?? 0).multipliedReportingOverflow(by: 10)
      let (sum, overflows) = product.addingReportingOverflow(UInt32(byte - UInt8(ascii: "0")))
      guard !isTooLarge, !overflows else { return nil }
      value = sum
    }
    return value == .max ? nil : value
  }
}

extension Origin {
  /// An origin with the scheme ``Scheme/vsock``.
  package init(_ address: VsockPort) {
    self.init(scheme: .vsock, host: String(address.cid), port: Int(address.port))
  }

  /// The port of an origin with the scheme ``Scheme/vsock``; nil if its parts are none, or for another scheme.
  package var vsockPort: VsockPort? {
    self.scheme == .vsock ? VsockPort("\(self.host):\(self.port)") : nil
  }
}
