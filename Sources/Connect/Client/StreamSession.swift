/// A stream's call and its results, behind the async views. When the last view is dropped, the call is
/// cancelled.
///
/// A task on the call's executor takes what is there, and gives what there is room for, without waiting.
///
/// `@unchecked Sendable`: all it holds is constant, and Sendable.
final class StreamSession<Input: Sendable, Output: Sendable>: ResultSource<Output>, @unchecked Sendable {
  let call: StreamCall<Input, Output>
  private let queue: ResultQueue<Output>

  init(
    client: ProtocolClient,
    method: MethodSpec<Input, Output>,
    streamType: StreamType,
    options: CallOptions
  ) {
    let queue = ResultQueue<Output>()
    self.queue = queue
    self.call = StreamCall(
      client: client,
      method: method,
      streamType: streamType,
      options: options,
      onResult: { queue.receive($0) }
    )
    super.init(method: method.info)
  }

  deinit {
    self.call.cancel()
  }

  override func cancel() {
    self.call.cancel()
  }

  /// Starts the call, and sends what is known of the request, in one hop.
  func start(sending message: Input? = nil) {
    let call = self.call
    call.executor.run {
      call.startOnExecutor()
      guard let message else { return }
      call.send(message) { _ in }
      call.finishRequest()
    }
  }

  override func next() async -> StreamResult<Output>? {
    let call = self.call
    let queue = self.queue
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        if call.executor.isCurrent {
          if queue.wait(continuation) { call.request(1) }
        } else {
          call.executor.execute {
            if queue.wait(continuation) { call.request(1) }
          }
        }
      }
    } onCancel: {
      call.cancel()
    }
  }

  override func takeMessage() -> Output? {
    guard self.call.executor.isCurrent, self.queue.isIdle, !Task.isCancelled else { return nil }
    return self.call.takeMessage()
  }
}

extension StreamCall {
  /// Sends a message, once there is room. Cancelling the task cancels the call.
  func send(_ message: Input) async throws(ConnectError) {
    if self.executor.isCurrent, !Task.isCancelled, self.sendAtOnce(message) { return }
    let error = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<ConnectError?, Never>) in
        self.executor.run {
          self.send(message) { continuation.resume(returning: $0) }
        }
      }
    } onCancel: {
      self.cancel()
    }
    if let error { throw error }
  }

  /// Ends the request behind what was sent.
  func finish() {
    self.executor.run { self.finishRequest() }
  }
}

extension ProtocolClient {
  /// A task that stands where the call was made, to run async interceptors with the caller's task-local values.
  func makeRunner() -> Mailbox<Void> {
    let runner = Mailbox<Void>(executor: self.executor)
    Task(executorPreference: self.executor.taskExecutor) { try? await runner.value {} }
    return runner
  }
}
