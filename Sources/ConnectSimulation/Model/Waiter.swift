internal import Synchronization

/// A task of the simulation that waits for an event.
///
/// `@unchecked Sendable`: touched on the simulation's executor alone, where tasks of the simulation run and are cancelled.
final class Waiter: @unchecked Sendable {
  private var continuation: CheckedContinuation<Bool, Never>?
  private var outcome: Bool?

  /// - Parameter cancellable: Whether the wait ends when the task is cancelled.
  /// - Returns: Whether the event came.
  func wait(cancellable: Bool) async -> Bool {
    guard cancellable else { return await self.wait() }
    return await withTaskCancellationHandler {
      await self.wait()
    } onCancel: {
      self.resume(false)
    }
  }

  private func wait() async -> Bool {
    await withCheckedContinuation { continuation in
      if let outcome = self.outcome {
        continuation.resume(returning: outcome)
      } else {
        self.continuation = continuation
      }
    }
  }

  /// - Returns: Whether this has decided the outcome.
  @discardableResult
  func resume(_ outcome: Bool) -> Bool {
    guard self.outcome == nil else { return false }
    self.outcome = outcome
    self.continuation.take()?.resume(returning: outcome)
    return true
  }
}
