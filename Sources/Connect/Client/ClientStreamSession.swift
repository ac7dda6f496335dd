/// The call and the response of a client stream, behind its async view. When the last view is dropped, the call is
/// cancelled.
final class ClientStreamSession<Input: Sendable, Output: Sendable>: Sendable {
  let call: StreamCall<Input, Output>
  private let response: SharedResponse<Output>

  init(client: ProtocolClient, method: MethodSpec<Input, Output>, options: CallOptions) {
    let response = SharedResponse<Output>()
    let receiver = SingleMessageReceiver(method: method.info) { response.set($0) }
    self.response = response
    self.call = StreamCall(
      client: client,
      method: method,
      streamType: .clientStream,
      options: options,
      onResult: { receiver.receive($0) }
    )
    receiver.call = self.call
    self.call.start()
  }

  deinit {
    self.call.cancel()
  }

  /// Ends the request and waits for the response. Cancelling the task cancels the call.
  func closeAndReceive() async -> ResponseMessage<Output> {
    let (call, response) = (self.call, self.response)
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        call.executor.run {
          call.finishRequest()
          response.wait(continuation)
          call.request(.max)
        }
      }
    } onCancel: {
      call.cancel()
    }
  }
}

/// One response for any number of tasks that wait for it.
///
/// Confined to the call's executor, which makes it `Sendable`.
private final class SharedResponse<Output: Sendable>: @unchecked Sendable {
  private var response: ResponseMessage<Output>?
  private var waiting: [UnsafeContinuation<ResponseMessage<Output>, Never>] = []

  func set(_ response: ResponseMessage<Output>) {
    self.response = response
    let waiting = self.waiting
    self.waiting = []
    for continuation in waiting { continuation.resume(returning: response) }
  }

  func wait(_ continuation: UnsafeContinuation<ResponseMessage<Output>, Never>) {
    if let response = self.response {
      continuation.resume(returning: response)
    } else {
      self.waiting.append(continuation)
    }
  }
}
