/// Combines the results of a client stream into its one response.
///
/// Confined to the call's executor.
final class SingleMessageReceiver {
  weak var call: Call?
  private var collector: SingleMessageCollector
  private var completion: (@Sendable (AnyResponse) -> Void)?

  init(method: MethodInfo, completion: @escaping @Sendable (AnyResponse) -> Void) {
    self.collector = SingleMessageCollector(method: method)
    self.completion = completion
  }

  func receive(_ result: ResultPart) {
    guard let completion = self.completion, let collected = self.collector.receive(result) else { return }
    self.completion = nil
    completion(AnyResponse(collected))
    self.call?.cancel()
  }
}

extension AnyResponse {
  fileprivate init(_ collected: SingleMessage) {
    let outcome: Outcome =
      switch collected.result {
      case .success(.message(let message)): .message(message)
      case .success(let part): .error(part.error ?? .undecodedMessage)
      case .failure(let error): .error(error)
      }
    self.init(outcome, headers: collected.headers, trailers: collected.trailers)
  }
}
