internal import Connect
internal import NIOCore

/// A stream of an ``InMemoryTransport``, with both its ends: the call's and the server's.
///
/// Confined to the executor, which makes it `Sendable`: the call's functions are called there, the server's hop.
final class InMemoryStream: HTTPStream, ServerExchange, @unchecked Sendable {
  private enum Part {
    case head(HTTPResponseHead)
    case body(ByteBuffer)
    case end(trailers: Headers)
  }

  private struct Waiter {
    var continuation: CheckedContinuation<Void, any Error>
    var timer: any CallTimer
  }

  private enum Progress {
    case nothing, head, end
  }

  let head: ServerRequestHead
  private let executor: any CallExecutor
  private let window: Int
  /// Nil once the call hears nothing more.
  private var handler: (any HTTPStreamHandler)?
  private var task: Task<Void, Never>?

  /// Pieces of the request that the server has not yet taken.
  private var received = CircularBuffer<ByteBuffer>()
  private var unreadBytes = 0
  private var isRequestComplete: Bool
  private var owesWritable = false
  private var reader: CheckedContinuation<ByteBuffer?, any Error>?

  /// Parts of the response that the call has no room for, each with the one who waits for that.
  private var outgoing = CircularBuffer<(part: Part, sent: CheckedContinuation<Void, any Error>?)>()
  private var progress = Progress.nothing
  /// Bytes given to the call that it has not consumed.
  private var unconsumedBytes = 0
  private var isPumpScheduled = false

  /// Why reading and waiting are over.
  private var interruption: ConnectError?
  private var deadline: (any CallTimer)?
  private var waiters: [Int: Waiter] = [:]
  private var nextWaiter = 0
  private var closeWaiters: [CheckedContinuation<Void, Never>] = []

  init(
    _ request: HTTPStreamRequest,
    handler: any HTTPStreamHandler,
    executor: any CallExecutor,
    window: Int
  ) {
    let target = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var head = ServerRequestHead(
      method: request.method.rawValue,
      path: target.first.map(String.init) ?? "",
      query: target.count > 1 ? String(target[1]) : "",
      headers: request.headers
    )
    head.context = request.context
    self.head = head
    self.handler = handler
    self.executor = executor
    self.window = window
    self.isRequestComplete = false
    if case .complete(let body) = request.body {
      self.isRequestComplete = true
      if body.readableBytes > 0 { self.received.append(body) }
      self.unreadBytes = body.readableBytes
    }
  }

  /// Tells the call of its connection, and starts whoever answers. On the executor, behind the stream's start.
  func begin(_ start: () -> Task<Void, Never>) {
    guard let handler = self.handler else { return }
    handler.streamDidStart(on: HTTPConnectionInfo(version: .http2, isReused: false, remoteAddress: "memory"))
    self.task = start()
  }

  /// Ends the stream with a failure. On the executor, outside of the call's functions.
  func fail(_ failure: HTTPStreamFailure) {
    guard let handler = self.handler else { return }
    self.close()
    handler.streamDidFail(failure)
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    guard self.handler != nil, !self.isRequestComplete else { return }
    self.owesWritable = true
    if let reader = self.reader.take() {
      reader.resume(returning: bytes)
    } else {
      self.received.append(bytes)
      self.unreadBytes += bytes.readableBytes
    }
    self.schedulePump()
  }

  func finish(trailers: Headers) {
    guard self.handler != nil else { return }
    self.isRequestComplete = true
    self.reader.take()?.resume(returning: nil)
  }

  func consume(_ count: Int) {
    self.unconsumedBytes -= count
    self.schedulePump()
  }

  func cancel() {
    self.task?.cancel()
    self.close()
  }

  // MARK: ServerExchange

  func nextChunk() async throws -> ByteBuffer? {
    try await self.onExecutor { continuation in
      if let chunk = self.received.popFirst() {
        self.unreadBytes -= chunk.readableBytes
        self.schedulePump()
        continuation.resume(returning: chunk)
      } else if self.handler == nil {
        continuation.resume(throwing: Self.clientIsGone)
      } else if self.isRequestComplete {
        continuation.resume(returning: nil)
      } else if let interruption = self.interruption {
        continuation.resume(throwing: interruption)
      } else if self.reader != nil {
        continuation.resume(throwing: Self.misuse("another task is reading the request"))
      } else {
        self.reader = continuation
      }
    }
  }

  func sendHead(status: Int, headers: Headers) async throws {
    try await self.send(.head(HTTPResponseHead(status: status, headers: headers)))
  }

  func sendBody(_ bytes: ByteBuffer) async throws {
    guard bytes.readableBytes > 0 else { return }
    try await self.send(.body(bytes))
  }

  func sendEnd(_ bytes: ByteBuffer, trailers: Headers) async throws {
    try await self.sendBody(bytes)
    try await self.send(.end(trailers: trailers))
  }

  func sleep(for duration: Duration) async throws {
    try await self.onExecutor { (continuation: CheckedContinuation<Void, any Error>) in
      if let interruption = self.interruption {
        continuation.resume(throwing: interruption)
        return
      }
      self.nextWaiter += 1
      let id = self.nextWaiter
      let timer = self.executor.schedule(after: duration) {
        self.waiters.removeValue(forKey: id)?.continuation.resume()
      }
      self.waiters[id] = Waiter(continuation: continuation, timer: timer)
    }
  }

  func setDeadline(in duration: Duration) {
    self.executor.run {
      guard self.handler != nil else { return }
      self.deadline = self.executor.schedule(after: duration) {
        self.interrupt(ConnectError(code: .deadlineExceeded, message: "the time limit has passed"))
      }
    }
  }

  func reset(code: UInt32) async {
    self.executor.execute {
      self.fail(
        HTTPStreamFailure(
          error: ConnectError(
            code: Code(http2ErrorCode: code),
            message: "the server reset the stream with HTTP/2 error code \(code)"
          )
        )
      )
    }
  }

  func waitUntilClosed() async {
    await withCheckedContinuation { continuation in
      self.executor.run {
        if self.handler == nil { continuation.resume() } else { self.closeWaiters.append(continuation) }
      }
    }
  }

  // MARK: Response

  private func send(_ part: Part) async throws {
    try await self.onExecutor { (continuation: CheckedContinuation<Void, any Error>) in
      do throws(ConnectError) {
        try self.advance(with: part)
      } catch {
        continuation.resume(throwing: error)
        return
      }
      // One who is out of time must still be able to say so.
      let waits = self.interruption == nil
      self.outgoing.append((part, waits ? continuation : nil))
      self.schedulePump()
      if !waits { continuation.resume() }
    }
  }

  private func advance(with part: Part) throws(ConnectError) {
    guard self.handler != nil else { throw Self.clientIsGone }
    switch (part, self.progress) {
    case (.head, .nothing): self.progress = .head
    case (.body, .head): break
    case (.end, .head): self.progress = .end
    case (.head, _): throw Self.misuse("the response's head was sent before")
    case (_, .nothing): throw Self.misuse("the response's head was not sent")
    case (_, .end): throw Self.misuse("the response has ended")
    }
  }

  /// Lets what waits go on, later: the call must not hear of anything from within its own functions.
  private func schedulePump() {
    guard self.handler != nil, !self.isPumpScheduled else { return }
    self.isPumpScheduled = true
    self.executor.execute {
      self.isPumpScheduled = false
      self.pump()
    }
  }

  private func pump() {
    if self.owesWritable, self.unreadBytes <= self.window, let handler = self.handler {
      self.owesWritable = false
      handler.streamDidBecomeWritable()
    }
    while let handler = self.handler, let (part, sent) = self.outgoing.first {
      switch part {
      case .head(let head):
        self.outgoing.removeFirst()
        handler.streamDidReceive(head)
      case .body(var bytes):
        let room = self.window - self.unconsumedBytes
        guard room > 0, let piece = bytes.readSlice(length: min(room, bytes.readableBytes)) else { return }
        self.outgoing.removeFirst()
        if bytes.readableBytes > 0 { self.outgoing.prepend((.body(bytes), sent)) }
        self.unconsumedBytes += piece.readableBytes
        handler.streamDidReceive(piece)
        if bytes.readableBytes > 0 { continue }
      case .end(let trailers):
        self.outgoing.removeFirst()
        self.close()
        handler.streamDidEnd(trailers: trailers)
      }
      sent?.resume()
    }
  }

  // MARK: End

  /// Ends the stream for both sides.
  private func close() {
    guard self.handler != nil else { return }
    self.handler = nil
    self.deadline?.cancel()
    self.deadline = nil
    self.interrupt(Self.clientIsGone)
    self.outgoing.removeAll()
    self.received.removeAll()
    let closeWaiters = self.closeWaiters
    self.closeWaiters = []
    for waiter in closeWaiters { waiter.resume() }
  }

  /// Fails what the server waits for, now and later. Sending stays possible, and no longer waits.
  private func interrupt(_ error: ConnectError) {
    self.interruption = self.interruption ?? error
    self.reader.take()?.resume(throwing: error)
    for index in self.outgoing.indices { self.outgoing[index].sent.take()?.resume(throwing: error) }
    let waiters = self.waiters
    self.waiters = [:]
    for waiter in waiters.values {
      waiter.timer.cancel()
      waiter.continuation.resume(throwing: error)
    }
  }

  private static let clientIsGone = ConnectError(code: .canceled, message: "the client has gone away")

  private static func misuse(_ what: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: what)
  }

  private func onExecutor<Value: Sendable>(
    _ work: @escaping @Sendable (CheckedContinuation<Value, any Error>) -> Void
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      self.executor.run { work(continuation) }
    }
  }
}
