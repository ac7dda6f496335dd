internal import Connect
internal import ConnectChannels
internal import NIOCore

/// Asks a proxy for a tunnel on a channel that is connected to the proxy, and tells once how that ended. Until then it is
/// the only handler.
final class ProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let route: ProxyRoute
  private var handshake: any ProxyHandshake
  private let timeout: Duration
  private let timeoutError: () -> ConnectError
  private var completion: ((Result<Void, ConnectError>) -> Void)?
  private var timer: Scheduled<Void>?
  private var isStarted = false

  /// - Parameters:
  ///   - timeoutError: The error after `timeout`.
  ///   - completion: On success the handler is no longer in the pipeline. The closure adds the handlers of what comes next
  ///     before it returns, and they get the bytes that came behind the proxy's answer. On failure the channel is about
  ///     to be closed.
  /// - Throws: ``ConnectError`` if the proxy's protocol cannot carry the origin's name or the credentials.
  init(
    _ route: ProxyRoute,
    timeout: Duration,
    timeoutError: @escaping () -> ConnectError,
    completion: @escaping (Result<Void, ConnectError>) -> Void
  ) throws(ConnectError) {
    self.route = route
    self.handshake = try route.handshake()
    self.timeout = timeout
    self.timeoutError = timeoutError
    self.completion = completion
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
    self.timer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(self.timeout)) {
      self.fail(self.timeoutError(), context: loopBound.value)
    }
    if context.channel.isActive { self.start(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.timer.take()?.cancel()
  }

  func channelActive(context: ChannelHandlerContext) {
    self.start(context)
    context.fireChannelActive()
  }

  private func start(_ context: ChannelHandlerContext) {
    guard !self.isStarted else { return }
    self.isStarted = true
    self.send(self.handshake.start(), context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Nothing counts any more once the handshake has failed.
    guard self.completion != nil else { return }
    let bytes = self.unwrapInboundIn(data)
    do throws(ProxyError) {
      switch try self.handshake.receive(Array(bytes.readableBytesView)) {
      case .wait: break
      case .send(let bytes): self.send(bytes, context)
      case .done(let leftover): self.succeed(leftover, context)
      }
    } catch {
      self.fail(self.route.describe(error), context: context)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.fail(self.route.describe(error), context: context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.fail(self.route.describe(self.handshake.closedByProxy()), context: context)
    context.fireChannelInactive()
  }

  private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
    context.writeAndFlush(NIOAny(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
  }

  private func succeed(_ leftover: [UInt8], _ context: ChannelHandlerContext) {
    let channel = context.channel
    guard let completion = self.completion.take() else { return }
    // First, so that the next handlers may be added anywhere.
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
    completion(.success(()))
    // The channel says itself when it has read everything.
    guard !leftover.isEmpty, channel.isActive else { return }
    channel.pipeline.syncOperations.fireChannelRead(NIOAny(channel.allocator.buffer(bytes: leftover)))
  }

  private func fail(_ error: ConnectError, context: ChannelHandlerContext) {
    self.timer.take()?.cancel()
    guard let completion = self.completion.take() else { return }
    completion(.failure(error))
    context.close(promise: nil)
  }
}
