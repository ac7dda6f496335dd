internal import NIOCore
internal import NIOPosix

/// The options of the sockets that connections have.
enum UDPSocket {
  /// What may wait to be read, in bytes; no more than the system's administrator allows (`net.core.rmem_max`).
  private static let queueSize = 2 << 20
  /// How many reads are made before what came of them is answered.
  private static let readCount = 4
  /// How many datagrams one read takes where the system does not put them together (recvmmsg).
  static let vectorSize = 8

  static func bootstrap(on eventLoop: any EventLoop, for address: SocketAddress) -> DatagramBootstrap {
    let bootstrap = DatagramBootstrap(group: eventLoop)
      .channelOption(.socketOption(.so_rcvbuf), value: self.queueSize)
      .channelOption(.explicitCongestionNotification, value: true)
    guard ReceiveOffload.isUsed else {
      let size = self.vectorSize * ReceiveBuffers.datagramSize
      return
        bootstrap
        .channelOption(.maxMessagesPerRead, value: UInt(self.readCount))
        .channelOption(.datagramVectorReadMessageCount, value: self.vectorSize)
        .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: size))
    }
    return
      bootstrap
      .channelOption(.maxMessagesPerRead, value: UInt(self.readCount))
      .channelOption(.recvAllocator, value: ReceiveBuffers())
      .channelOption(.datagramReceiveSegmentSize, value: true)
  }

  /// Has the system put consecutive datagrams together (generic receive offload), once there is room for that. Where
  /// that fails, datagrams come one by one.
  ///
  /// - Parameter readCount: How often something was read from the channel. To be called after each of the first reads.
  static func coalesceDatagrams(of channel: any Channel, afterReads readCount: Int) {
    guard readCount == self.readCount, ReceiveOffload.isUsed else { return }
    try? channel.syncOptions?.setOption(.datagramReceiveOffload, value: true)
  }

  /// Small buffers for the first reads, then a new one for each read, which is freed after it.
  ///
  /// NIO keeps the first buffers: as many as it reads in a row. Most connections are idle most of the time, and should
  /// not hold room for the largest read.
  private struct ReceiveBuffers: RecvByteBufferAllocator {
    static let datagramSize = 2048
    /// The most that the system puts together.
    private static let largestSize = 65_536
    private var readCount = 0

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
      let isFirst = self.readCount < UDPSocket.readCount
      return allocator.buffer(capacity: isFirst ? Self.datagramSize : Self.largestSize)
    }

    /// Returns that the next buffer may be larger, so that NIO does not use the previous one for it.
    mutating func record(actualReadBytes: Int) -> Bool {
      if self.readCount < UDPSocket.readCount { self.readCount += 1 }
      return true
    }
  }

  // MARK: The size of datagrams

  /// Values of IP_MTU_DISCOVER and IPV6_MTU_DISCOVER (Linux, ip(7)).
  private enum PathMTUDiscovery {
    /// IP_PMTUDISC_DONT: datagrams may be cut on their way, and what routers report is no error of the socket.
    static let off: ChannelOptions.Types.SocketOption.Value = 0
    /// IP_PMTUDISC_PROBE: datagrams are sent whole or not at all.
    static let probe: ChannelOptions.Types.SocketOption.Value = 3
    /// IPV6_PMTUDISC_INTERFACE: as `probe`, but what routers report is no error of the socket. In IPv4 it would be one.
    static let interface: ChannelOptions.Types.SocketOption.Value = 4
  }

  /// Has the system send datagrams whole or not at all (RFC 9000, section 14).
  static func forbidFragments(of channel: any Channel) {
    let isIPv6 = channel.remoteAddress?.protocol == .inet6
    self.set(isIPv6 ? PathMTUDiscovery.interface : PathMTUDiscovery.probe, of: channel)
  }

  /// To be called before a datagram that may be too large for the path; ``ignoreReports(on:)`` after it.
  static func willSendProbe(on channel: any Channel) { self.forbidFragments(of: channel) }

  /// The largest datagram that the system sends to the peer in one piece, in bytes; nil if it is not known.
  static func largestDatagram(of channel: any Channel) -> Int? {
    #if os(Linux)
    // IPV6_MTU and IP_MTU of a connected socket: what the interface takes, or a router has reported. Less the headers.
    let (option, headers): (ChannelOptions.Types.SocketOption, Int) =
      switch channel.remoteAddress {
      case .v6: (.init(level: .ipv6, name: .init(rawValue: 24)), 48)
      default: (.init(level: .ip, name: .init(rawValue: 14)), 28)
      }
    guard let size = try? channel.syncOptions?.getOption(option) else { return nil }
    return Int(size) - headers
    #else
    return nil
    #endif
  }

  /// Has the system ignore what routers report of datagrams that were too large (ICMP), in IPv4.
  ///
  /// The report would become an error of the connected socket, EMSGSIZE, for which NIO closes the channel. Until the
  /// first probe, the error is welcome: a path that does not carry QUIC's smallest datagrams is no use. After the first
  /// probe, a datagram may be cut on a path that has become narrower.
  static func ignoreReports(on channel: any Channel) {
    guard channel.remoteAddress?.protocol != .inet6 else { return }
    self.set(PathMTUDiscovery.off, of: channel)
    // A router on this machine, such as a container's, has reported already. Reading the error removes it.
    _ = try? channel.syncOptions?.getOption(.socketOption(.so_error))
  }

  /// Where the system refuses, it may send fragments.
  private static func set(_ value: ChannelOptions.Types.SocketOption.Value, of channel: any Channel) {
    #if os(Linux)
    let option: ChannelOptions.Types.SocketOption =
      switch channel.remoteAddress {
      case .v6: .init(level: .ipv6, name: .init(rawValue: 23))
      default: .init(level: .ip, name: .init(rawValue: 10))
      }
    try? channel.syncOptions?.setOption(option, value: value)
    #endif
  }
}
