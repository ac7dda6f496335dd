internal import Connect
internal import NIOCore
internal import NIOHTTP1

/// Ends the pipeline of an HTTP/1.1 connection or an HTTP/2 stream. Passes each request to an async function as an
/// ``Exchange``, one after the other, with back-pressure in both directions.
///
/// All of its state belongs to the channel's event loop.
final class ExchangeHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = Never
  typealias OutboundOut = HTTPServerResponsePart

  /// The request that is being served.
  private struct Running {
    let id: Int
    let isKeepAlive: Bool
    var chunks = CircularBuffer<ByteBuffer>()
    var bufferedBytes = 0
    var isRequestComplete = false
    var isResponseComplete = false
    /// Whether an error has hit the channel.
    var isBroken = false
    /// The error with which reading and waiting fail.
    var interruption: (any Error)?
    var reader: EventLoopPromise<ByteBuffer?>?
    var nextWaiter = 0
    /// Promises that wait for the channel to become writable, or for a time to pass.
    var waiters: [Int: EventLoopPromise<Void>] = [:]
    var writers: [Int] = []
    var task: Task<Void, Never>?
    var deadline: Scheduled<Void>?
  }

  /// The limit on received bytes that the exchange has not consumed; above the limit, reading stops.
  private static let readLimit = 65536

  private let version: RequestRecord.Version
  private let connection: Int
  private let journal: Journal
  private let serve: @Sendable (Exchange) async -> Void
  private var context: ChannelHandlerContext?
  private var running: Running?
  /// Received parts of requests after the running one.
  private var backlog = CircularBuffer<HTTPServerRequestPart>()
  private var isReadHeld = false
  private var isClosing = false

  init(
    version: RequestRecord.Version,
    connection: Int,
    journal: Journal,
    serve: @escaping @Sendable (Exchange) async -> Void
  ) {
    self.version = version
    self.connection = connection
    self.journal = journal
    self.serve = serve
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }
}

// MARK: - From the client

extension ExchangeHandler {
  func read(context: ChannelHandlerContext) {
    if let running = self.running, running.bufferedBytes >= Self.readLimit {
      self.isReadHeld = true
    } else {
      context.read()
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    self.backlog.append(self.unwrapInboundIn(data))
    self.takeBacklog(context)
  }

  private func takeBacklog(_ context: ChannelHandlerContext) {
    while let part = self.backlog.first {
      if case .head(let head) = part {
        guard self.running == nil else { return }
        self.backlog.removeFirst()
        self.start(head, context)
        continue
      }
      self.backlog.removeFirst()
      guard self.running != nil else { continue }
      switch part {
      case .head: break
      case .body(let bytes): self.received(bytes)
      case .end(let trailers): self.receivedEnd(trailers)
      }
    }
  }

  private func start(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let (record, attempt) = self.journal.requestStarted(
      head,
      version: self.version,
      connection: self.connection
    )
    let isKeepAlive = self.version == .http2 || head.isKeepAlive
    self.running = Running(id: record.id, isKeepAlive: isKeepAlive)
    if self.version == .http1, head.headers["expect"].contains(where: { $0.lowercased() == "100-continue" }) {
      let proceed = HTTPResponseHead(version: .http1_1, status: .continue)
      context.writeAndFlush(self.wrapOutboundOut(.head(proceed)), promise: nil)
    }
    let exchange = Exchange(
      request: record,
      attempt: attempt,
      channel: context.channel,
      handler: NIOLoopBound(self, eventLoop: context.eventLoop)
    )
    self.running?.task = Task { [serve] in await serve(exchange) }
  }

  private func received(_ bytes: ByteBuffer) {
    guard let id = self.running?.id else { return }
    self.journal.update(request: id) { $0.bytesReceived += bytes.readableBytes }
    if let reader = self.running?.reader {
      self.running?.reader = nil
      reader.succeed(bytes)
    } else if self.running?.isResponseComplete == false {
      self.running?.chunks.append(bytes)
      self.running?.bufferedBytes += bytes.readableBytes
    }
  }

  private func receivedEnd(_ trailers: HTTPHeaders?) {
    guard let id = self.running?.id else { return }
    self.journal.update(request: id) { record in
      record.isRequestComplete = true
      record.trailers = trailers.map { HeaderFields($0) } ?? HeaderFields()
    }
    self.running?.isRequestComplete = true
    self.running?.reader?.succeed(nil)
    self.running?.reader = nil
    self.finishIfComplete()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.running?.isBroken = true
    self.interrupt(error)
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let reset = event as? StreamResetHandler.Reset, let id = self.running?.id {
      self.journal.requestReset(id, code: reset.code)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.isClosing = true
    if let running = self.running {
      // An HTTP/2 stream closes by itself once its last frame was written to the connection.
      let isStreamOver = self.version == .http2 && context.channel.parent?.isActive == true
      switch (isStreamOver, running.isResponseComplete && !running.isBroken) {
      case (true, true): self.journal.requestEnded(running.id, .completed)
      case (true, false): self.journal.requestEnded(running.id, .endedByServer)
      case (false, _): self.journal.requestEnded(running.id, .connectionClosed)
      }
    }
    self.interrupt(ChannelError.inputClosed)
    self.running?.task?.cancel()
    self.running?.deadline?.cancel()
    self.running = nil
    self.backlog.removeAll()
    context.fireChannelInactive()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable, let writers = self.running?.writers {
      self.running?.writers = []
      for writer in writers { self.running?.waiters.removeValue(forKey: writer)?.succeed() }
    }
    context.fireChannelWritabilityChanged()
  }
}

// MARK: - From the exchange

extension ExchangeHandler {
  /// The next piece of the request's body; nil after the last one.
  func nextChunk(of id: Int, on eventLoop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
    guard self.running?.id == id else { return eventLoop.makeFailedFuture(ChannelError.alreadyClosed) }
    if let chunk = self.running?.chunks.popFirst() {
      self.running?.bufferedBytes -= chunk.readableBytes
      self.releaseRead()
      return eventLoop.makeSucceededFuture(chunk)
    }
    if self.running?.isRequestComplete == true { return eventLoop.makeSucceededFuture(nil) }
    if let error = self.running?.interruption { return eventLoop.makeFailedFuture(error) }
    let promise = eventLoop.makePromise(of: ByteBuffer?.self)
    self.running?.reader = promise
    return promise.futureResult
  }

  /// Writes parts of the response. The future succeeds when the channel is writable again.
  func write(
    _ parts: [HTTPServerResponsePart],
    of id: Int,
    on eventLoop: any EventLoop
  ) -> EventLoopFuture<Void> {
    for part in parts {
      guard let context = self.context, !self.isClosing, self.running?.id == id,
        self.running?.isResponseComplete == false
      else { return eventLoop.makeFailedFuture(ChannelError.alreadyClosed) }
      self.write(part, of: id, context)
    }
    self.context?.flush()
    self.finishIfComplete()
    let isOver = self.running.map { $0.id != id || $0.isResponseComplete || $0.interruption != nil } ?? true
    if isOver || self.context?.channel.isWritable == true { return eventLoop.makeSucceededVoidFuture() }
    return self.addWaiter(isWriter: true, on: eventLoop).future
  }

  private func write(_ part: HTTPServerResponsePart, of id: Int, _ context: ChannelHandlerContext) {
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenFailure { self.interrupt($0, in: id) }
    var part = part
    switch part {
    case .head(var head):
      if self.running?.isKeepAlive == false { head.headers.replaceOrAdd(name: "connection", value: "close") }
      part = .head(head)
    case .body(let data):
      let count = data.readableBytes
      written.futureResult.whenSuccess { [journal] in
        journal.update(request: id) { $0.bytesWritten += count }
      }
    case .end:
      written.futureResult.whenSuccess { [journal] in journal.requestEnded(id, .completed) }
      self.running?.isResponseComplete = true
      self.running?.chunks.removeAll()
      self.running?.bufferedBytes = 0
      self.releaseRead()
      if self.running?.isKeepAlive == false { self.close(context, after: written.futureResult) }
    }
    context.write(self.wrapOutboundOut(part), promise: written)
  }

  /// Waits for a time, unless the exchange is interrupted.
  func sleep(_ time: TimeAmount, in id: Int, on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
    guard self.running?.id == id else { return eventLoop.makeFailedFuture(ChannelError.alreadyClosed) }
    if let error = self.running?.interruption { return eventLoop.makeFailedFuture(error) }
    let (waiter, future) = self.addWaiter(isWriter: false, on: eventLoop)
    eventLoop.assumeIsolated().scheduleTask(in: time) {
      guard self.running?.id == id else { return }
      self.running?.waiters.removeValue(forKey: waiter)?.succeed()
    }
    return future
  }

  /// After this time, reading and waiting fail with `deadline_exceeded`.
  func setDeadline(in time: TimeAmount, of id: Int) {
    guard let context = self.context, self.running?.id == id, self.running?.isResponseComplete == false else {
      return
    }
    self.running?.deadline?.cancel()
    self.running?.deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
      self.interrupt(ConnectError(code: .deadlineExceeded, message: "the time limit has passed"), in: id)
    }
  }

  /// Fails all current and future waits of the exchange. Writing stays possible, and no longer waits.
  func interrupt(_ error: any Error, in id: Int? = nil) {
    guard let running = self.running, id == nil || running.id == id else { return }
    self.running?.interruption = running.interruption ?? error
    self.running?.reader = nil
    self.running?.waiters = [:]
    self.running?.writers = []
    running.reader?.fail(error)
    for waiter in running.waiters.values { waiter.fail(error) }
  }

  /// Ends the exchange on the wire without a complete response: with RST_STREAM, or for HTTP/1.1 by closing
  /// the connection.
  func abort(_ id: Int, code: UInt32) {
    guard let context = self.context, self.running?.id == id else { return }
    self.journal.requestEnded(id, .endedByServer)
    self.isClosing = true
    switch self.version {
    case .http1: context.close(promise: nil)
    case .http2: context.triggerUserOutboundEvent(StreamResetHandler.Reset(code: code), promise: nil)
    }
  }

  /// Notes that the server is about to end the exchange in another way.
  func willAbort(_ id: Int) {
    self.journal.requestEnded(id, .endedByServer)
  }

  private func addWaiter(
    isWriter: Bool,
    on eventLoop: any EventLoop
  ) -> (id: Int, future: EventLoopFuture<Void>) {
    let promise = eventLoop.makePromise(of: Void.self)
    guard var running = self.running else {
      promise.fail(ChannelError.alreadyClosed)
      return (0, promise.futureResult)
    }
    running.nextWaiter += 1
    running.waiters[running.nextWaiter] = promise
    if isWriter { running.writers.append(running.nextWaiter) }
    self.running = running
    return (running.nextWaiter, promise.futureResult)
  }

  private func releaseRead() {
    guard self.isReadHeld, let running = self.running, running.bufferedBytes < Self.readLimit else { return }
    self.isReadHeld = false
    self.context?.read()
  }

  private func close(_ context: ChannelHandlerContext, after written: EventLoopFuture<Void>) {
    self.isClosing = true
    written.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
  }

  /// Starts the next request of an HTTP/1.1 connection.
  private func finishIfComplete() {
    guard let running = self.running, running.isRequestComplete, running.isResponseComplete else { return }
    running.deadline?.cancel()
    guard self.version == .http1, !self.isClosing else { return }
    self.running = nil
    if let context = self.context { self.takeBacklog(context) }
    if self.isReadHeld, self.running == nil {
      self.isReadHeld = false
      self.context?.read()
    }
  }
}
