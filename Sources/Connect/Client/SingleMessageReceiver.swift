/// Completes a client stream's callback with the one message, or the error, that its results come to.
///
/// Confined to the call's executor once the call has started, which makes it `Sendable`.
final class SingleMessageReceiver<Output: Sendable>: @unchecked Sendable {
  weak var call: Call?
  private var collector: SingleMessageCollector<Output>
  private var completion: (@Sendable (ResponseMessage<Output>) -> Void)?

  init(method: MethodInfo, completion: @escaping @Sendable (ResponseMessage<Output>) -> Void) {
    self.collector = SingleMessageCollector(method: method)
    self.completion = completion
  }

  func receive(_ result: StreamResult<Output>) {
    guard let completion = self.completion, let collected = self.collector.receive(result) else { return }
    self.completion = nil
    completion(ResponseMessage(collected))
    self.call?.cancel()
  }
}
