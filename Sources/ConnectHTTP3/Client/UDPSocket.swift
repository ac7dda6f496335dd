internal import NIOCore
internal import NIOPosix

/// The options of the sockets that connections have.
enum UDPSocket {
  /// What may wait to be read, in bytes; no more than the system's administrator allows (`net.core.rmem_max`).
  private static let queueSize = 2 << 20
  /// How often is read before what came of it is answered.
  private static let readCount = 4

  static func bootstrap(on eventLoop: any EventLoop, for address: SocketAddress) -> DatagramBootstrap {
    let bootstrap = DatagramBootstrap(group: eventLoop)
      .channelOption(.socketOption(.so_rcvbuf), value: self.queueSize)
      .channelOption(.explicitCongestionNotification, value: true)
    guard System.supportsUDPReceiveOffload else {
      return bootstrap.channelOption(.maxMessagesPerRead, value: 16)
    }
    return
      bootstrap
      .channelOption(.maxMessagesPerRead, value: UInt(self.readCount))
      .channelOption(.recvAllocator, value: ReceiveBuffers())
      .channelOption(.datagramReceiveSegmentSize, value: true)
  }

  /// Has the system put datagrams together that come one behind the other (generic receive offload), once there is room for that.
  /// Where that fails, datagrams come one by one.
  ///
  /// - Parameter readCount: How often something was read from the channel. To be called after each of the first reads.
  static func coalesceDatagrams(of channel: any Channel, afterReads readCount: Int) {
    guard readCount == self.readCount, System.supportsUDPReceiveOffload else { return }
    try? channel.syncOptions?.setOption(.datagramReceiveOffload, value: true)
  }

  /// Small buffers for the first reads, then a new one for each read, which is freed after it.
  ///
  /// NIO keeps as many buffers as it reads in a row, the first ones. Most connections are idle most of the time, and none is to
  /// hold the room for the most that can be read.
  private struct ReceiveBuffers: RecvByteBufferAllocator {
    private static let datagramSize = 2048
    /// The most that the system puts together.
    private static let largestSize = 65_536
    private var readCount = 0

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
      let isFirst = self.readCount < UDPSocket.readCount
      return allocator.buffer(capacity: isFirst ? Self.datagramSize : Self.largestSize)
    }

    /// Returns that the next buffer may be larger, so that the one before is not used for it.
    mutating func record(actualReadBytes: Int) -> Bool {
      if self.readCount < UDPSocket.readCount { self.readCount += 1 }
      return true
    }
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
