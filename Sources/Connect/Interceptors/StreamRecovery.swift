/// The results of a response, and of another one in the place of its error; see ``StreamResponse/recoverErrors(_:)``.
final class StreamRecovery<Output: Sendable> {
  typealias Result = StreamResult<Output>
  typealias Recover = @Sendable (ConnectError) async throws -> StreamResponse<Output>?

  private var pull: PulledSequence<Result>.Pull
  /// Nil once it was asked.
  private var recover: Recover?
  /// Headers that may still be replaced.
  private var heldHeaders: Headers?
  /// What follows headers that were held back.
  private var heldResult: Result?
  private var hasShown = false

  init(pull: @escaping PulledSequence<Result>.Pull, recover: @escaping Recover) {
    self.pull = pull
    self.recover = recover
  }

  func next() async throws -> Result? {
    if let result = self.heldResult.take() { return result }
    while let result = try await self.pull() {
      switch result {
      case .headers(let headers):
        if self.recover != nil {
          self.heldHeaders = headers
        } else if !self.hasShown {
          return self.show(result)
        }
      case .complete(_, let error?, _):
        guard let end = await self.replace(error, result) else { continue }
        return self.show(end)
      case .message, .complete:
        return self.show(result)
      }
    }
    return self.heldHeaders.take().map { .headers($0) }
  }

  /// - Returns: The end that stays; nil if another response goes on.
  private func replace(_ error: ConnectError, _ end: Result) async -> Result? {
    guard let recover = self.recover.take() else { return end }
    do {
      guard let response = try await recover(error) else { return end }
      self.heldHeaders = nil
      self.pull = response.results.makePull()
      return nil
    } catch {
      return .failed(ConnectError(error))
    }
  }

  /// Gives `result` out, behind headers that were held back.
  private func show(_ result: Result) -> Result {
    self.hasShown = true
    guard let headers = self.heldHeaders.take() else { return result }
    self.heldResult = result
    return .headers(headers)
  }
}
