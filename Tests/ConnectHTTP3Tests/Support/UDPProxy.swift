internal import NIOCore
internal import NIOPosix
internal import TestSupport

/// A simulated network between clients and a server, over UDP sockets on loopback. Its conditions say what happens to
/// datagrams.
///
/// Each client has a separate socket towards the server, as behind a NAT. ICMP messages of the server's system are not
/// forwarded.
final class UDPProxy: Sendable {
  /// What happens to datagrams, in both directions. Shares are in percent.
  struct Conditions: Sendable {
    var lost = 0
    var doubled = 0
    /// Share of datagrams that arrive 5 to 15 ms late, behind others.
    var reordered = 0
    /// Share of datagrams that follow a datagram of random bytes and a copy with one wrong bit.
    var garbage = 0
    /// Share of datagrams that are marked as congested (ECN), if their sender enables ECN.
    var congested = 0
    /// The delay of each datagram.
    var delay = TimeAmount.zero
    /// Larger datagrams are lost.
    var largest = 65_535
    /// Whether all datagrams are lost.
    var isBlack = false
  }

  let port: Int
  private let front: any Channel
  private let network: NIOLoopBound<Network>

  /// - Parameters:
  ///   - serverPort: The server's port on 127.0.0.1.
  ///   - seed: The seed of all random decisions.
  init(to serverPort: Int, seed: UInt64 = 1, _ conditions: Conditions = Conditions()) async throws {
    let server = try SocketAddress(ipAddress: "127.0.0.1", port: serverPort)
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    let network = try await eventLoop.submit {
      NIOLoopBound(Network(server, conditions, seed: seed, eventLoop), eventLoop: eventLoop)
    }.get()
    self.network = network
    self.front = try await DatagramBootstrap(group: eventLoop)
      .channelOption(.explicitCongestionNotification, value: true)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1 << 16))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          network.value.front = channel
          try channel.pipeline.syncOperations.addHandler(Front(network.value))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    self.port = self.front.localAddress?.port ?? 0
  }

  /// Closes all sockets.
  func stop() async throws {
    try await self.change { network in
      for channel in network.clients.values { channel.close(promise: nil) }
      network.clients = [:]
    }
    try await self.front.close()
  }

  func set(_ change: @escaping @Sendable (inout Conditions) -> Void) async throws {
    try await self.change { change(&$0.conditions) }
  }

  /// From now on, the server sees the clients at other ports.
  func rebind() async throws {
    try await self.change { network in
      for channel in network.clients.values { channel.close(promise: nil) }
      network.clients = [:]
    }
  }

  /// From now on, another server has the address.
  func replaceServer(port: Int) async throws {
    let server = try SocketAddress(ipAddress: "127.0.0.1", port: port)
    try await self.change { $0.server = server }
    try await self.rebind()
  }

  struct Counts: Sendable {
    var arrived = 0
    var lost = 0
    /// The number of clients' datagrams that enable ECN.
    var markable = 0
    /// The size of the largest datagram from a client that got through.
    var largestFromClient = 0
  }

  /// The numbers of datagrams so far.
  func counts() async throws -> Counts {
    let network = self.network
    return try await self.front.eventLoop.submit { network.value.counts }.get()
  }

  private func change(_ body: @escaping @Sendable (Network) -> Void) async throws {
    let network = self.network
    try await self.front.eventLoop.submit { body(network.value) }.get()
  }
}

private struct Datagram {
  var bytes: ByteBuffer
  var mark: NIOExplicitCongestionNotificationState

  init(_ envelope: AddressedEnvelope<ByteBuffer>) {
    self.bytes = envelope.data
    self.mark = envelope.metadata?.ecnState ?? .transportNotCapable
  }
}

/// Confined to its event loop.
private final class Network {
  var server: SocketAddress
  var conditions: UDPProxy.Conditions
  var front: (any Channel)?
  /// The sockets towards the server, by the address of the client.
  var clients: [SocketAddress: any Channel] = [:]
  /// Datagrams that wait for the socket of a new client.
  private var waiting: [SocketAddress: [Datagram]] = [:]
  var counts = UDPProxy.Counts()
  private var random: SeededGenerator
  private let eventLoop: any EventLoop

  init(
    _ server: SocketAddress,
    _ conditions: UDPProxy.Conditions,
    seed: UInt64,
    _ eventLoop: any EventLoop
  ) {
    self.server = server
    self.conditions = conditions
    self.random = SeededGenerator(quietly: seed)
    self.eventLoop = eventLoop
  }

  func toServer(_ datagram: Datagram, from client: SocketAddress) {
    if datagram.mark != .transportNotCapable { self.counts.markable += 1 }
    if datagram.bytes.readableBytes <= self.conditions.largest {
      self.counts.largestFromClient = max(self.counts.largestFromClient, datagram.bytes.readableBytes)
    }
    if let channel = self.clients[client] { return self.carry(datagram, over: channel, to: self.server) }
    self.waiting[client, default: []].append(datagram)
    guard self.waiting[client]?.count == 1 else { return }
    let back = NIOLoopBound(Back(self, client), eventLoop: self.eventLoop)
    DatagramBootstrap(group: self.eventLoop)
      .channelOption(.explicitCongestionNotification, value: true)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1 << 16))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(back.value)
        }
      }
      .bind(host: "127.0.0.1", port: 0).assumeIsolated().whenSuccess { channel in
        self.clients[client] = channel
        for datagram in self.waiting.removeValue(forKey: client) ?? [] {
          self.carry(datagram, over: channel, to: self.server)
        }
      }
  }

  func toClient(_ datagram: Datagram, _ client: SocketAddress) {
    guard let front = self.front else { return }
    self.carry(datagram, over: front, to: client)
  }

  private func happens(_ share: Int) -> Bool {
    share > 0 && Int.random(in: 0..<100, using: &self.random) < share
  }

  private func carry(_ datagram: Datagram, over channel: any Channel, to address: SocketAddress) {
    var datagram = datagram
    let bytes = datagram.bytes
    self.counts.arrived += 1
    let isLost =
      self.conditions.isBlack || bytes.readableBytes > self.conditions.largest
      || self.happens(self.conditions.lost)
    guard !isLost else {
      self.counts.lost += 1
      return
    }
    if datagram.mark != .transportNotCapable, self.happens(self.conditions.congested) {
      datagram.mark = .congestionExperienced
    }
    if self.happens(self.conditions.garbage) {
      let count = Int.random(in: 1...1452, using: &self.random)
      let rubbish = (0..<count).map { _ in UInt8.random(in: 0...255, using: &self.random) }
      var damaged = datagram
      damaged.bytes = ByteBuffer(bytes: rubbish)
      self.send(damaged, over: channel, to: address, after: self.conditions.delay)
      damaged.bytes = bytes
      let index = bytes.readerIndex + Int.random(in: 0..<max(bytes.readableBytes, 1), using: &self.random)
      if let byte = bytes.getInteger(at: index, as: UInt8.self) {
        damaged.bytes.setInteger(byte ^ 1 << UInt8.random(in: 0..<8, using: &self.random), at: index)
      }
      self.send(damaged, over: channel, to: address, after: self.conditions.delay)
    }
    var delay = self.conditions.delay
    if self.happens(self.conditions.reordered) {
      delay = delay + .milliseconds(Int64.random(in: 5...15, using: &self.random))
    }
    self.send(datagram, over: channel, to: address, after: delay)
    if self.happens(self.conditions.doubled) {
      self.send(datagram, over: channel, to: address, after: delay)
    }
  }

  private func send(
    _ datagram: Datagram,
    over channel: any Channel,
    to address: SocketAddress,
    after delay: TimeAmount
  ) {
    let envelope = AddressedEnvelope(
      remoteAddress: address,
      data: datagram.bytes,
      metadata: .init(ecnState: datagram.mark)
    )
    guard delay > .zero else {
      channel.writeAndFlush(envelope, promise: nil)
      return
    }
    self.eventLoop.scheduleTask(in: delay) { channel.writeAndFlush(envelope, promise: nil) }
  }
}

/// Reads what clients send.
private final class Front: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  private let network: Network

  init(_ network: Network) { self.network = network }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let envelope = self.unwrapInboundIn(data)
    self.network.toServer(Datagram(envelope), from: envelope.remoteAddress)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}

/// Reads what the server sends to a client.
private final class Back: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  private let network: Network
  private let client: SocketAddress

  init(_ network: Network, _ client: SocketAddress) {
    self.network = network
    self.client = client
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    self.network.toClient(Datagram(self.unwrapInboundIn(data)), self.client)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
