/// A stream's call and its results, behind the async views. When the last view is dropped, the call is
/// cancelled.
final class StreamSession<Input: Sendable, Output: Sendable>: Sendable {
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
      outerRunner: client.makeRunner(for: options),
      onResult: { queue.receive($0) }
    )
  }

  deinit {
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

  /// The next result; nil behind the end. Cancelling the task cancels the call.
  func next() async -> StreamResult<Output>? {
    let call = self.call
    let queue = self.queue
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        call.executor.run {
          if queue.wait(continuation) { call.request(1) }
        }
      }
    } onCancel: {
      call.cancel()
    }
  }

  /// Sends a message, once there is room. Cancelling the task cancels the call.
  func send(_ message: Input) async throws(ConnectError) {
    let call = self.call
    let error = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        call.executor.run {
          call.send(message) { continuation.resume(returning: $0) }
        }
      }
    } onCancel: {
      call.cancel()
    }
    if let error { throw error }
  }

  func finish() {
    let call = self.call
    call.executor.run { call.finishRequest() }
  }
}

extension ProtocolClient {
  /// A task that stands where the call was made, to run async interceptors with the caller's task-local values;
  /// nil if there are no interceptors.
  func makeRunner(for options: CallOptions) -> Mailbox<Void>? {
    guard
      !self.config.interceptors.isEmpty || self.config.methodInterceptors != nil
        || !options.interceptors.isEmpty
    else { return nil }
    let runner = Mailbox<Void>(executor: self.executor)
    Task(executorPreference: self.executor.taskExecutor) { try? await runner.value {} }
    return runner
  }
}
