internal import NIOCore
internal import NIOPosix

/// The options of the sockets that connections have.
enum UDPSocket {
  /// How many datagrams are read at once, and how large each may be.
  private static let readCount = 16
  private static let readSize = 2048

  static func bootstrap(on eventLoop: any EventLoop, for address: SocketAddress) -> DatagramBootstrap {
    DatagramBootstrap(group: eventLoop)
      .channelOption(.datagramVectorReadMessageCount, value: self.readCount)
      .channelOption(
        .recvAllocator,
        value: FixedSizeRecvByteBufferAllocator(capacity: self.readCount * self.readSize)
      )
      .channelOption(.explicitCongestionNotification, value: true)
  }

  /// Has the system send datagrams whole or not at all (RFC 9000, section 14).
  static func forbidFragments(of channel: any Channel) {
    #if os(Linux)
    // IP_MTU_DISCOVER and IPV6_MTU_DISCOVER with IP_PMTUDISC_PROBE. Where the system refuses, it may send fragments.
    let option: ChannelOptions.Types.SocketOption =
      switch channel.remoteAddress {
      case .v6: .init(level: .ipv6, name: .init(rawValue: 23))
      default: .init(level: .ip, name: .init(rawValue: 10))
      }
    channel.setOption(option, value: 3).assumeIsolated().whenComplete { _ in }
    #endif
  }
}
