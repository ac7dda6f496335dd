package import Connect
package import NIOCore

/// A stream of an ``InMemoryTransport``, with both its ends: the call's and the server's.
///
/// Confined to the executor, which makes it `Sendable`: the call's functions are called there, the server's hop.
package final class InMemoryStream: HTTPStream, FailableExchange, @unchecked Sendable {
  package enum Part {
    case head(HTTPResponseHead)
    case body(ByteBuffer)
    case end(trailers: Headers)

    var isBody: Bool { if case .body = self { true } else { false } }
  }

  private enum Progress {
    case nothing, head, end
  }

  package let head: ServerRequestHead
  /// The connection counts its streams from 1 on.
  let number: Int
  /// The stream's index among the connection's streams, which the connection sets.
  var place = 0
  private let connection: InMemoryConnection
  private let executor: any CallExecutor
  private let window: Int
  /// Nil once the call gets no more events.
  private var handler: (any HTTPStreamHandler)?
  private var hasBegun = false
  private var task: Task<Void, Never>?

  /// Pieces of the request that the server has not yet taken.
  private var received = CircularBuffer<(bytes: ByteBuffer, time: Duration)>()
  /// When the client has sent the last piece that the server took, or the end that the server saw.
  package private(set) var lastChunkTime: Duration
  private var finishTime: Duration
  private var unreadBytes = 0
  private var isRequestComplete: Bool
  private var owesWritable = false
  private var reader: ExecutorWait<ByteBuffer?>?

  /// Parts of the response that do not fit into the window yet, each with the wait of its sender.
  private var outgoing = CircularBuffer<
    (part: Part, sent: ExecutorWait<Void>?, onSent: (@Sendable () -> Void)?)
  >()
  private var progress = Progress.nothing
  /// Bytes given to the call that it has not consumed.
  private var unconsumedBytes = 0
  private var isPumpScheduled = false

  /// Why reading and waiting are over.
  private var interruption: ConnectError?
  private var deadline: (any CallTimer)?
  private var sleepers: [ObjectIdentifier: (wait: ExecutorWait<Void>, timer: any CallTimer)] = [:]
  private var closeWaits: [ExecutorWait<Void>] = []
  /// When the stream has ended; nil as long as it has not.
  package private(set) var closeTime: Duration?

  init(
    _ request: HTTPStreamRequest,
    handler: any HTTPStreamHandler,
    on connection: InMemoryConnection,
    number: Int
  ) {
    let target = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var head = ServerRequestHead(
      method: request.method.rawValue,
      path: target.first.map(String.init) ?? "",
      query: target.count > 1 ? String(target[1]) : "",
      headers: request.headers
    )
    head.context = request.context
    head.serverAddress = connection.serverAddress
    head.connection = Confined(connection, to: connection.server.executor)
    self.head = head
    self.handler = handler
    self.connection = connection
    self.number = number
    self.executor = connection.server.executor
    self.window = connection.server.window
    self.isRequestComplete = false
    self.lastChunkTime = self.executor.now
    self.finishTime = self.lastChunkTime
    if case .complete(let body) = request.body {
      self.isRequestComplete = true
      if body.readableBytes > 0 { self.received.append((body, self.finishTime)) }
      self.unreadBytes = body.readableBytes
    }
  }

  package var isOpen: Bool { self.handler != nil }

  /// Reports the connection to the call, and starts the task that answers. On the executor, after the stream's start.
  func begin(_ start: () -> Task<Void, Never>) {
    guard let handler = self.handler else { return }
    self.hasBegun = true
    handler.streamDidStart(on: self.connection.nextInfo())
    // The call may have cancelled the stream meanwhile.
    if self.handler != nil { self.task = start() }
  }

  /// Ends the stream with a failure. On the executor, outside of the call's functions.
  func fail(_ failure: HTTPStreamFailure) {
    guard let handler = self.handler else { return }
    self.close()
    handler.streamDidFail(failure)
    self.connection.streamDidClose(self)
  }

  /// The connection has ended, and has forgotten the stream.
  func connectionWasLost(_ error: ConnectError) {
    guard let handler = self.handler else { return }
    self.close()
    self.task?.cancel()
    handler.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: !self.hasBegun))
  }

  // MARK: HTTPStream

  package func write(_ bytes: ByteBuffer) {
    guard self.handler != nil, !self.isRequestComplete else { return }
    self.owesWritable = true
    if let reader = self.reader.take() {
      self.lastChunkTime = self.executor.now
      reader.resume(returning: bytes)
    } else {
      self.received.append((bytes, self.executor.now))
      self.unreadBytes += bytes.readableBytes
    }
    self.schedulePump()
  }

  package func finish(trailers: Headers) {
    guard self.handler != nil else { return }
    self.isRequestComplete = true
    self.finishTime = self.executor.now
    if let reader = self.reader.take() {
      self.lastChunkTime = self.finishTime
      reader.resume(returning: nil)
    }
  }

  package func consume(_ count: Int) {
    self.unconsumedBytes -= count
    self.schedulePump()
  }

  package func cancel() {
    guard self.handler != nil else { return }
    self.close()
    self.task?.cancel()
    self.connection.streamWasCancelled(self)
    if let onCallGivenUp = self.connection.onCallGivenUp { onCallGivenUp(self.connection) }
  }

  package func expire() { self.cancel() }

  // MARK: ServerExchange

  package func nextChunk() async throws -> ByteBuffer? {
    if self.executor.isCurrent {
      try Task.checkCancellation()
      if let chunk = try self.takeChunk() { return chunk.value }
    }
    return try await self.onExecutor { (wait: ExecutorWait<ByteBuffer?>) in
      do throws(ConnectError) {
        if let chunk = try self.takeChunk() {
          wait.resume(returning: chunk.value)
        } else {
          self.reader = wait
        }
      } catch {
        wait.resume(throwing: error)
      }
    }
  }

  /// The next piece of the request, or its end; nil if there is neither yet.
  private func takeChunk() throws(ConnectError) -> (value: ByteBuffer?, Void)? {
    if let (chunk, time) = self.received.popFirst() {
      self.lastChunkTime = time
      self.unreadBytes -= chunk.readableBytes
      self.schedulePump()
      return (chunk, ())
    }
    if self.handler == nil { throw Self.clientIsGone }
    if self.isRequestComplete {
      self.lastChunkTime = self.finishTime
      return (nil, ())
    }
    if let interruption { throw interruption }
    if self.reader != nil { throw Self.misuse("another task is reading the request") }
    return nil
  }

  package func sendHead(status: Int, headers: Headers) async throws {
    try await self.send(.head(HTTPResponseHead(status: status, headers: headers)))
  }

  package func sendBody(_ bytes: ByteBuffer) async throws {
    guard bytes.readableBytes > 0 else { return }
    try await self.send(.body(bytes))
  }

  package func sendEnd(_ bytes: ByteBuffer, trailers: Headers) async throws {
    try await self.sendBody(bytes)
    try await self.send(.end(trailers: trailers))
  }

  package func sleep(for duration: Duration) async throws {
    try await self.onExecutor { (wait: ExecutorWait<Void>) in
      if let interruption = self.interruption {
        wait.resume(throwing: interruption)
        return
      }
      let id = ObjectIdentifier(wait)
      let timer = self.executor.schedule(after: duration) {
        self.sleepers.removeValue(forKey: id)?.wait.resume(returning: ())
      }
      self.sleepers[id] = (wait, timer)
    }
  }

  package func setDeadline(in duration: Duration) {
    self.executor.run {
      guard self.handler != nil else { return }
      self.deadline = self.executor.schedule(after: duration) {
        self.interrupt(ConnectError(code: .deadlineExceeded, message: "the time limit has passed"))
      }
    }
  }

  package func reset(code: UInt32) async { self.failLater(.reset(code: code)) }

  package func failLater(_ failure: HTTPStreamFailure) {
    self.executor.execute { self.fail(failure) }
  }

  package func waitUntilClosed() async {
    try? await self.onExecutor { (wait: ExecutorWait<Void>) in
      if self.handler == nil { wait.resume(returning: ()) } else { self.closeWaits.append(wait) }
    }
  }

  // MARK: Response

  private func send(_ part: Part) async throws {
    // Only body parts wait for room.
    if !part.isBody, self.executor.isCurrent {
      try Task.checkCancellation()
      try self.advance(with: part)
      self.post(part, onSent: nil)
      return
    }
    try await self.onExecutor { (wait: ExecutorWait<Void>) in
      do throws(ConnectError) {
        try self.advance(with: part)
      } catch {
        wait.resume(throwing: error)
        return
      }
      // A handler whose deadline has passed must still be able to send its error.
      let waits = self.interruption == nil
      self.outgoing.append((part, waits ? wait : nil, nil))
      self.schedulePump()
      if !waits { wait.resume(returning: ()) }
    }
  }

  /// Sends a part, after ``advance(with:)``. On the executor. `onSent` is called when the part was taken or dropped.
  package func post(_ part: Part, onSent: (@Sendable () -> Void)?) {
    guard self.handler != nil else {
      onSent?()
      return
    }
    self.outgoing.append((part, nil, onSent))
    self.schedulePump()
  }

  /// Notes that a part is on its way.
  ///
  /// - Throws: ``ConnectError`` if the part is out of order, or the client has gone away.
  package func advance(with part: Part) throws(ConnectError) {
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

  /// Schedules ``pump()``: the handler must not be called from within the call's own functions.
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
    while let handler = self.handler, let (part, sent, onSent) = self.outgoing.first {
      switch part {
      case .head(let head):
        self.outgoing.removeFirst()
        self.connection.streamDidAnswer()
        handler.streamDidReceive(head)
      case .body(var bytes):
        let room = self.window - self.unconsumedBytes
        guard room > 0, let piece = bytes.readSlice(length: min(room, bytes.readableBytes)) else { return }
        self.outgoing.removeFirst()
        if bytes.readableBytes > 0 { self.outgoing.prepend((.body(bytes), sent, onSent)) }
        self.unconsumedBytes += piece.readableBytes
        handler.streamDidReceive(piece)
        if bytes.readableBytes > 0 { continue }
      case .end(let trailers):
        self.outgoing.removeFirst()
        self.close()
        handler.streamDidEnd(trailers: trailers)
        self.connection.streamDidClose(self)
      }
      sent?.resume(returning: ())
      onSent?()
    }
  }

  // MARK: End

  /// Ends the stream for both sides.
  private func close() {
    guard self.handler != nil else { return }
    self.handler = nil
    self.closeTime = self.executor.now
    self.deadline?.cancel()
    self.deadline = nil
    self.interrupt(Self.clientIsGone)
    let outgoing = self.outgoing
    self.outgoing.removeAll()
    for part in outgoing { part.onSent?() }
    self.received.removeAll()
    let closeWaits = self.closeWaits
    self.closeWaits = []
    for wait in closeWaits { wait.resume(returning: ()) }
  }

  /// Fails what the server waits for, now and later. Sending stays possible, and no longer waits.
  private func interrupt(_ error: ConnectError) {
    self.interruption = self.interruption ?? error
    self.reader.take()?.resume(throwing: error)
    for index in self.outgoing.indices { self.outgoing[index].sent.take()?.resume(throwing: error) }
    let sleepers = self.sleepers
    self.sleepers = [:]
    for sleeper in sleepers.values {
      sleeper.timer.cancel()
      sleeper.wait.resume(throwing: error)
    }
  }

  /// Waits until `work` has the wait resumed; throws `CancellationError` if the task is cancelled before.
  private func onExecutor<Value: Sendable>(
    _ work: @escaping @Sendable (ExecutorWait<Value>) -> Void
  ) async throws -> Value {
    let wait = ExecutorWait<Value>()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        self.executor.run {
          guard !wait.isCancelled else {
            continuation.resume(throwing: CancellationError())
            return
          }
          wait.continuation = continuation
          work(wait)
        }
      }
    } onCancel: {
      self.executor.run {
        wait.isCancelled = true
        self.forget(ObjectIdentifier(wait))
        wait.resume(throwing: CancellationError())
      }
    }
  }

  /// Abandons a wait. A part that it was to send is still sent.
  private func forget(_ id: ObjectIdentifier) {
    if let reader = self.reader, ObjectIdentifier(reader) == id { self.reader = nil }
    self.sleepers.removeValue(forKey: id)?.timer.cancel()
    self.closeWaits.removeAll { ObjectIdentifier($0) == id }
  }
}
