internal import Synchronization

/// A stream's call and its results, behind the async views. When the last view is dropped, the call is cancelled.
final class StreamSession: Sendable {
  let call: StreamCall
  private let queue: Confined<ResultQueue>
  private let isIterated = Atomic(false)

  init(client: ProtocolClient, method: AnyMethod, streamType: StreamType, options: CallOptions) {
    let queue = Confined(ResultQueue())
    self.call = client.makeStream(method, streamType, options) { queue.value.receive($0) }
    self.queue = Confined(queue.value, to: self.call.call.executor)
  }

  deinit {
    self.call.cancel()
  }

  var method: MethodInfo { self.call.call.plan.method.info }

  /// Returns false if an iteration has begun before.
  func beginIteration() -> Bool {
    !self.isIterated.exchange(true, ordering: .relaxed)
  }

  /// Starts the call, and sends `message` and the end of the request, in one hop. Without a message, only starts the
  /// call.
  func start(sending message: (any AnyMessage)? = nil) {
    // The call is then over before it begins, and nothing is sent.
    if Task.isCancelled { self.call.cancel() }
    self.call.run { side, call in
      call.startOnExecutor()
      guard let message else { return }
      side.send(message, call) { _ in }
      side.finishRequest(call)
    }
  }

  /// The next result, if it is available without waiting: for tasks on the call's executor.
  func poll() -> ResultPart? {
    guard self.call.call.executor.isCurrent, !Task.isCancelled else { return nil }
    let call = self.call.call
    return self.queue.value.poll(self.call.sideOnExecutor, call)
  }

  /// Waits for the next result; nil behind the end. Cancelling the task cancels the call.
  nonisolated(nonsending) func next() async -> ResultPart? {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let queue = self.queue
        self.call.run { queue.value.wait(continuation, $0, $1) }
      }
    } onCancel: {
      self.call.cancel()
    }
  }
}
