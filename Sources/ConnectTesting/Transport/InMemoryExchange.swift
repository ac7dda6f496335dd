package import Connect
package import NIOCore

/// The server's side of an ``InMemoryStream``.
package struct InMemoryExchange: FailableExchange {
  private let stream: InMemoryStream
  private let executor: any CallExecutor

  init(_ stream: InMemoryStream) {
    self.stream = stream
    self.executor = stream.executor
  }

  package var head: ServerRequestHead { self.stream.head }

  // MARK: On the executor

  package var connection: InMemoryConnection { self.stream.connection }
  package var isOpen: Bool { self.stream.isOpen }
  /// When the stream has ended; nil as long as it has not.
  package var closeTime: Duration? { self.stream.closeTime }
  /// When the client has sent the last piece that the server took, or the end that the server saw.
  package var lastChunkTime: Duration { self.stream.request.lastChunkTime }

  /// Notes that a part is on its way.
  ///
  /// - Throws: ``ConnectError`` if the part is out of order, or the client has gone away.
  package func advance(with part: InMemoryResponse.Part) throws(ConnectError) {
    guard self.stream.isOpen else { throw .clientIsGone }
    try self.stream.response.advance(with: part)
  }

  /// Sends a part, after ``advance(with:)``. `onSent` is called when the part was taken or dropped.
  package func post(_ part: InMemoryResponse.Part, onSent: (@Sendable () -> Void)?) {
    if self.stream.isOpen { self.stream.send((part, nil, onSent)) } else { onSent?() }
  }

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
          self.stream.request.wait(wait)
        }
      } catch {
        wait.resume(throwing: error)
      }
    }
  }

  /// The next piece of the request, or its end; nil if there is neither yet.
  private func takeChunk() throws(ConnectError) -> (value: ByteBuffer?, Void)? {
    if let chunk = self.stream.request.takePiece() {
      self.stream.schedulePump()
      return (chunk, ())
    }
    if !self.stream.isOpen { throw .clientIsGone }
    if self.stream.request.takeEnd() { return (nil, ()) }
    if let interruption = self.stream.waits.interruption { throw interruption }
    if self.stream.request.isAwaited { throw .misuse("another task is reading the request") }
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

  private func send(_ part: InMemoryResponse.Part) async throws {
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
      let waits = self.stream.waits.interruption == nil
      self.stream.send((part, waits ? wait : nil, nil))
      if !waits { wait.resume(returning: ()) }
    }
  }

  package func sleep(for duration: Duration) async throws {
    try await self.onExecutor { (wait: ExecutorWait<Void>) in
      if let interruption = self.stream.waits.interruption {
        wait.resume(throwing: interruption)
      } else {
        let timer = self.executor.schedule(after: duration) { self.stream.waits.wake(wait) }
        self.stream.waits.sleep(wait, timer)
      }
    }
  }

  package func setDeadline(in duration: Duration) {
    self.executor.run {
      guard self.stream.isOpen else { return }
      self.stream.waits.deadline = self.executor.schedule(after: duration) {
        self.stream.interrupt(ConnectError(code: .deadlineExceeded, message: "the time limit has passed"))
      }
    }
  }

  package func reset(code: UInt32) async { self.failLater(.reset(code: code)) }

  package func failLater(_ failure: HTTPStreamFailure) {
    self.executor.execute { self.stream.fail(failure) }
  }

  package func waitUntilClosed() async {
    try? await self.onExecutor { (wait: ExecutorWait<Void>) in
      if self.stream.isOpen { self.stream.waits.waitForClose(wait) } else { wait.resume(returning: ()) }
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
        // A part that the wait was to send is still sent.
        self.stream.request.forget(ObjectIdentifier(wait))
        self.stream.waits.forget(ObjectIdentifier(wait))
        wait.resume(throwing: CancellationError())
      }
    }
  }
}
