/// The call and the response of a client stream, behind its async view. When the last view is dropped, the call is
/// cancelled.
final class ClientStreamSession: Sendable {
  let call: StreamCall
  private let response: Confined<SharedResponse>

  init(client: ProtocolClient, method: AnyMethod, options: CallOptions) {
    let response = Confined(SharedResponse())
    self.call = client.makeClientStream(method, options) { response.value.set($0) }
    self.response = Confined(response.value, to: self.call.call.executor)
    // The call is then over before it begins, and nothing is sent.
    if Task.isCancelled { self.call.cancel() }
    self.call.call.run { $0.startOnExecutor() }
  }

  deinit {
    self.call.cancel()
  }

  /// Ends the request and waits for the response. Cancelling the task cancels the call.
  nonisolated(nonsending) func closeAndReceive() async -> AnyResponse {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let response = self.response
        self.call.run { side, call in
          side.finishRequest(call)
          response.value.wait(continuation)
          side.request(.max, call)
        }
      }
    } onCancel: {
      self.call.cancel()
    }
  }
}

/// One response for any number of tasks that wait for it. Confined to the call's executor.
private final class SharedResponse {
  private var response: AnyResponse?
  private var waiting: [UnsafeContinuation<AnyResponse, Never>] = []

  func set(_ response: AnyResponse) {
    self.response = response
    let waiting = self.waiting
    self.waiting = []
    for continuation in waiting { continuation.resume(returning: response) }
  }

  func wait(_ continuation: UnsafeContinuation<AnyResponse, Never>) {
    if let response = self.response {
      continuation.resume(returning: response)
    } else {
      self.waiting.append(continuation)
    }
  }
}
