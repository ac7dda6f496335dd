/// A stream's call and the caller's side of it, from any thread.
struct StreamCall: Sendable {
  let call: Call
  private let side: Confined<StreamSide>

  init(_ call: Call, _ side: StreamSide) {
    self.call = call
    self.side = Confined(side, to: call.executor)
  }

  /// Runs `work` with the caller's side on the executor.
  func run(_ work: @escaping @Sendable (StreamSide, Call) -> Void) {
    self.call.run { work(self.side.value, $0) }
  }

  /// The caller's side; to be read on the executor.
  var sideOnExecutor: StreamSide { self.side.value }

  func cancel() {
    self.call.cancel()
  }

  /// Ends the request after the messages sent so far.
  func finish() {
    self.run { $0.finishRequest($1) }
  }

  /// Sends a message, once there is room. Cancelling the task cancels the call.
  nonisolated(nonsending) func send(_ message: any AnyMessage) async throws(ConnectError) {
    if self.call.executor.isCurrent, !Task.isCancelled, self.side.value.sendAtOnce(message, self.call) {
      return
    }
    let error = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<ConnectError?, Never>) in
        self.run { side, call in
          side.send(message, call) { continuation.resume(returning: $0) }
        }
      }
    } onCancel: {
      self.cancel()
    }
    if let error { throw error }
  }
}
