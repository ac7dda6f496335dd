/// How large the datagrams of a connection may be now.
///
/// By default, connections begin with 1,200 bytes, and libngtcp2 tries whether the path takes up to 1,452 (RFC 9000, section
/// 14.3). If the user knows of a network that takes more, datagrams after the handshake may be as large, until they stop
/// getting through.
struct DatagramSize {
  /// What fits an Ethernet frame with IPv6, in bytes.
  static let ethernet = 1452
  /// What every path of QUIC takes, in bytes.
  static let smallest = 1200
  /// The largest that can be set, in bytes: jumbo frames.
  static let largest = 9_200

  /// What the network is known to take; nil if that is to be found out.
  private let known: Int?
  /// The room for a datagram now.
  private(set) var limit: Int

  /// The size that the network is known to take; nil if nothing larger than usual is known.
  ///
  /// - Parameters:
  ///   - configured: What the user says of the network.
  ///   - possible: What the network interface takes; nil if the system does not say.
  static func known(_ configured: Int, possible: Int?) -> Int? {
    guard let possible else { return nil }
    let size = min(configured, possible, Self.largest)
    return size > Self.ethernet ? size : nil
  }

  init(known: Int?) {
    self.known = known
    self.limit = known == nil ? Self.ethernet : Self.smallest
  }

  /// All of the handshake got through.
  mutating func handshakeWasConfirmed() {
    if let known { self.limit = known }
  }

  /// What is larger than the smallest gets through no more.
  mutating func giveUp() {
    self.limit = Self.smallest
  }
}
