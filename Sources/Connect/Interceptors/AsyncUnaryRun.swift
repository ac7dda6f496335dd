/// One run of the body of an async stage.
///
/// Confined to the call's executor.
final class AsyncUnaryRun<Response: Sendable>: @unchecked Sendable {
  /// Keeps the call alive while the body runs.
  private let call: Call
  /// The request that the body was given, which one that it makes anew is completed from.
  let request: RequestHead
  var job: Job?
  var hasCalledNext = false
  var pendingNext: Mailbox<Response>?
  private(set) var lastResponse: Response?

  init(call: Call, request: RequestHead) {
    self.call = call
    self.request = request
  }

  func finishNext(with response: Response) {
    self.lastResponse = response
    let mailbox = self.pendingNext
    self.pendingNext = nil
    mailbox?.post(.success(response))
  }

  /// Cancels the body's task. A pending `next` returns `response`, or throws if there is none.
  func end(with response: Response?) {
    self.job?.cancel()
    self.job = nil
    let mailbox = self.pendingNext
    self.pendingNext = nil
    if let response {
      mailbox?.post(.success(response))
    } else {
      mailbox?.post(.failure(CancellationError()))
    }
  }
}
