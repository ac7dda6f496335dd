import ConnectTesting
import Synchronization

/// Records the values passed to a callback, and lets a test wait for them.
final class CallbackResults<Value: Sendable>: Sendable {
  private let values: AsyncStream<Value>
  private let continuation: AsyncStream<Value>.Continuation

  init() {
    (self.values, self.continuation) = AsyncStream.makeStream()
  }

  func receive(_ value: Value) {
    self.continuation.yield(value)
  }

  /// The next `count` values. Fails if a value takes too long.
  func next(_ count: Int) async throws -> [Value] {
    let values = self.values
    return try await withThrowingTaskGroup(of: [Value].self) { group in
      group.addTask {
        var received: [Value] = []
        for await value in values {
          received.append(value)
          if received.count == count { break }
        }
        return received
      }
      group.addTask {
        try await Task.sleep(for: .seconds(5))
        throw ExpectationFailure("fewer than \(count) results were called back")
      }
      defer { group.cancelAll() }
      return try await group.next() ?? []
    }
  }
}
