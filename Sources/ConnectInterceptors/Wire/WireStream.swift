internal import Connect
internal import NIOCore

/// An exchange between a call and a transport, with the hooks of interceptors on the way.
///
/// ``WireFlow`` decides what moves; this carries it out. Hooks run within a function of the transport, or in a piece of work of
/// their own, but never within a function of the call, which could be in the middle of something.
///
/// Confined to the executor.
final class WireStream: HTTPStream, HTTPStreamHandler {
  private let endpoint: any HTTPEndpoint
  private let executor: any CallExecutor
  private let taskExecutor: any TaskExecutor
  /// Empty once they know the end.
  private var hooks: [WireHooks]
  /// Nil once the exchange is over.
  private var handler: (any HTTPStreamHandler)?
  /// Nil before the request's head has passed all hooks, and when the transport has nothing more.
  private var inner: (any HTTPStream)?
  private var flow: WireFlow
  private var isPumping = false
  private var isPumpScheduled = false

  init(
    _ request: HTTPStreamRequest,
    through hooks: [WireHooks],
    over endpoint: any HTTPEndpoint,
    limits: WireLimits,
    handler: any HTTPStreamHandler
  ) {
    self.hooks = hooks
    self.endpoint = endpoint
    self.executor = endpoint.executor
    self.taskExecutor = endpoint.executor.taskExecutor ?? CallTaskExecutor(endpoint.executor)
    self.handler = handler
    self.flow = WireFlow(
      request,
      through: hooks.map(\.function),
      names: hooks.map(\.name),
      limits: limits
    )
    self.schedulePump()
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    self.flow.write(bytes)
    self.schedulePump()
  }

  func finish(trailers: Headers) {
    self.flow.finish(trailers)
    self.schedulePump()
  }

  func consume(_ count: Int) {
    let freed = self.flow.consume(count)
    if freed > 0 { self.inner?.consume(freed) }
    if self.flow.hasWaitingResponse { self.schedulePump() }
  }

  func cancel() { self.giveUp(.cancelled) { $0.cancel() } }

  func expire() { self.giveUp(.expired) { $0.expire() } }

  private func giveUp(_ outcome: WireOutcome, _ end: (any HTTPStream) -> Void) {
    guard self.handler.take() != nil else { return }
    self.flow.close()
    if let inner = self.inner.take() { end(inner) }
    let here = Confined(self, to: self.executor)
    self.executor.execute { here.value.tellHooks(outcome) }
  }

  // MARK: Moving parts

  /// Schedules ``pump()``: hooks and the call must not be called from within the call's own functions.
  private func schedulePump() {
    guard !self.isPumping, !self.isPumpScheduled, self.handler != nil else { return }
    self.isPumpScheduled = true
    let here = Confined(self, to: self.executor)
    self.executor.execute {
      here.value.isPumpScheduled = false
      here.value.pump()
    }
  }

  private func pump() {
    guard !self.isPumping else { return }
    self.isPumping = true
    while self.handler != nil, let action = self.flow.next() { self.perform(action) }
    self.isPumping = false
  }

  private func perform(_ action: WireFlow.Action) {
    switch action {
    case .ask(let ask, let part):
      self.hooks[self.flow.interceptor(of: ask)].call(
        part,
        ask.direction,
        self.makeReply(ask, part),
        on: self.taskExecutor
      )
    case .start(let head): self.inner = self.endpoint.startStream(head, handler: self)
    case .write(let bytes): self.inner?.write(bytes)
    case .finish(let trailers): self.inner?.finish(trailers: trailers)
    case .consume(let count): self.inner?.consume(count)
    case .cancel: self.inner.take()?.cancel()
    case .tellWritable: self.handler?.streamDidBecomeWritable()
    case .deliver(let part):
      switch part {
      case .response(let head): self.handler?.streamDidReceive(head)
      case .chunk(let bytes, _): self.handler?.streamDidReceive(bytes)
      case .end(let trailers): self.end(.completed) { $0.streamDidEnd(trailers: trailers) }
      case .failure(let failure): self.end(.failed(failure)) { $0.streamDidFail(failure) }
      case .request: break
      }
    }
  }

  private func makeReply(_ ask: WireAsk, _ part: WirePart) -> WireReply {
    let (here, executor) = (Confined(self, to: self.executor), self.executor)
    return WireReply(part.name) { answer in
      if executor.isCurrent {
        here.value.flow.take(answer, from: ask)
        here.value.schedulePump()
      } else {
        executor.execute {
          here.value.flow.take(answer, from: ask)
          here.value.pump()
        }
      }
    }
  }

  private func end(_ outcome: WireOutcome, _ tell: (any HTTPStreamHandler) -> Void) {
    guard let handler = self.handler.take() else { return }
    self.flow.close()
    self.inner = nil
    tell(handler)
    self.tellHooks(outcome)
  }

  private func tellHooks(_ outcome: WireOutcome) {
    let hooks = self.hooks
    self.hooks = []
    for hooks in hooks.reversed() { hooks.function.endFunction?(outcome) }
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    guard !self.flow.isTransportOver else { return }
    for hooks in self.hooks.reversed() { hooks.function.connectionFunction?(connection) }
    self.handler?.streamDidStart(on: connection)
  }

  func streamDidBecomeWritable() {
    self.flow.transportDidSendAll()
    self.pump()
  }

  func streamDidReceive(_ head: HTTPResponseHead) { self.receive(.response(head)) }

  func streamDidReceive(_ bytes: ByteBuffer) {
    self.receive(.chunk(bytes, credit: bytes.readableBytes))
  }

  func streamDidEnd(trailers: Headers) { self.receive(.end(trailers)) }

  func streamDidFail(_ failure: HTTPStreamFailure) { self.receive(.failure(failure)) }

  private func receive(_ part: WirePart) {
    self.flow.receive(part)
    if part.kind == .end || part.kind == .failure { self.inner = nil }
    self.pump()
  }
}
