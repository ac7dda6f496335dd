internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// The socket of one DNS query.
///
/// Each query has its own socket, and so its own port. The system chooses the port at random, which makes forged
/// answers harder (RFC 5452, section 9.2). The socket is connected to the server, so that datagrams of others do not
/// arrive.
///
/// `@unchecked Sendable`: what changes is touched on `eventLoop` alone; functions for other threads hop first.
final class DNSQuerySocket: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Event: Sendable {
    /// A datagram, or a message of the connection. The next one is read when ``DNSQuerySocket/readNext()`` is called.
    case received([UInt8])
    /// The query cannot be answered any more. The last event.
    case failed(String)
  }

  private let query: StubResolution.Query
  private let eventLoop: any EventLoop
  private let report: @Sendable (Event) -> Void
  private var channel: (any Channel)?
  private var stream = DNSStream()
  private var isOver = false

  /// - Parameter report: Called on `eventLoop`.
  init(
    _ query: StubResolution.Query,
    on eventLoop: any EventLoop,
    _ report: @escaping @Sendable (Event) -> Void
  ) {
    self.query = query
    self.eventLoop = eventLoop
    self.report = report
  }

  /// Connects, and sends the query. May be called from any thread, once.
  func open() {
    self.eventLoop.execute { self.connect() }
  }

  /// May be called from any thread.
  func readNext() {
    self.eventLoop.execute { self.channel?.read() }
  }

  /// Ends without another event, except one that is on its way. May be called from any thread.
  func close() {
    self.eventLoop.execute { self.end() }
  }

  // MARK: - On the event loop

  private func connect() {
    guard !self.isOver else { return }
    let address: SocketAddress
    do {
      address = try SocketAddress(self.query.server)
    } catch {
      self.fail(error)
      return
    }
    let connected: EventLoopFuture<any Channel>
    switch self.query.transport {
    case .udp:
      connected = DatagramBootstrap(group: self.eventLoop)
        .channelOption(.autoRead, value: false)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandlers([DatagramContent(), self])
          }
        }
        .connect(to: address)
    case .tcp:
      connected = ClientBootstrap(group: self.eventLoop)
        .connectTimeout(TimeAmount(max(self.query.timeout.clamped, .milliseconds(1))))
        .channelOption(.autoRead, value: false)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
        }
        .connect(to: address)
    }
    connected.assumeIsolated().whenFailure { self.fail($0) }
  }

  private func end() {
    self.isOver = true
    self.channel.take()?.close(promise: nil)
  }

  private func fail(_ error: any Error) {
    let reason = (error as? IOError).flatMap { strerror($0.errnoCode) }.map { String(cString: $0) }
    self.fail("cannot be asked over \(self.query.transport): \(reason ?? "\(error)")")
  }

  private func fail(_ problem: String) {
    guard !self.isOver else { return }
    self.end()
    self.report(.failed(problem))
  }

  // MARK: - ChannelInboundHandler

  func handlerAdded(context: ChannelHandlerContext) {
    self.channel = context.channel
    if self.isOver { self.end() }
  }

  func channelActive(context: ChannelHandlerContext) {
    let bytes = self.query.transport == .tcp ? DNSStream.framed(self.query.bytes) : self.query.bytes
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenFailure { self.fail($0) }
    context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: written)
    context.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !self.isOver else { return }
    let bytes = Self.unwrapInboundIn(data).readableBytesView
    guard self.query.transport == .tcp else {
      self.report(.received(Array(bytes)))
      return
    }
    let messages = self.stream.receive(bytes)
    for message in messages { self.report(.received(message)) }
    if messages.isEmpty { context.read() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.fail(error)
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.fail("closed the connection without an answer")
  }
}

/// What a datagram of a connected socket contains.
private final class DatagramContent: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  typealias InboundOut = ByteBuffer

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    context.fireChannelRead(Self.wrapInboundOut(Self.unwrapInboundIn(data).data))
  }
}
