internal import Connect
internal import NIOCore
internal import NIOSSL
internal import NIOTLS

/// Waits for the TLS handshake of a channel and tells once how it ended. Sits behind the TLS handler until then.
final class TLSHandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  private let timeout: Duration
  private let describeTimeout: () -> ConnectError
  private let describe: (any Error) -> ConnectError
  private let isTrusted: () -> Bool
  private var completion: ((Result<String?, ConnectError>) -> Void)?
  private var timer: Scheduled<Void>?

  /// - Parameters:
  ///   - timeoutError: What to fail with after `timeout`.
  ///   - describe: Turns an error into ours.
  ///   - isTrusted: Whether the server was verified, if it has to be. Asked when the handshake has succeeded.
  ///   - completion: Gets the protocol that was negotiated by ALPN, if one was.
  init(
    timeout: Duration,
    timeoutError: @escaping () -> ConnectError,
    describe: @escaping (any Error) -> ConnectError,
    isTrusted: @escaping () -> Bool,
    completion: @escaping (Result<String?, ConnectError>) -> Void
  ) {
    self.timeout = timeout
    self.describeTimeout = timeoutError
    self.describe = describe
    self.isTrusted = isTrusted
    self.completion = completion
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
    self.timer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(self.timeout)) {
      self.fail(self.describeTimeout(), context: loopBound.value)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.timer?.cancel()
    self.timer = nil
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case TLSUserEvent.handshakeCompleted(let negotiated) = event else {
      context.fireUserInboundEventTriggered(event)
      return
    }
    guard self.isTrusted() else {
      self.fail(self.describe(NIOSSLError.noCertificateToValidate), context: context)
      return
    }
    self.timer?.cancel()
    self.completion.take()?(.success(negotiated))
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard self.completion != nil else {
      context.fireErrorCaught(error)
      return
    }
    self.fail(self.describe(error), context: context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    if self.completion != nil {
      self.fail(self.describe(ChannelError.eof), context: context)
    }
    context.fireChannelInactive()
  }

  private func fail(_ error: ConnectError, context: ChannelHandlerContext) {
    self.timer?.cancel()
    guard let completion = self.completion.take() else { return }
    completion(.failure(error))
    context.close(promise: nil)
  }
}
