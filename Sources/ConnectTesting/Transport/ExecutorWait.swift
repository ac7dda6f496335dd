/// A task that waits, which is resumed once. Confined to the executor, which makes it `Sendable`.
final class ExecutorWait<Value: Sendable>: @unchecked Sendable {
  var continuation: CheckedContinuation<Value, any Error>?
  var isCancelled = false

  func resume(returning value: Value) {
    self.continuation.take()?.resume(returning: value)
  }

  func resume(throwing error: any Error) {
    self.continuation.take()?.resume(throwing: error)
  }
}
