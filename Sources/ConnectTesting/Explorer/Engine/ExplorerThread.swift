internal import Foundation
internal import Synchronization

/// Runs explorations one after the other, each on a thread of its own. Code under test is then never in a task of the test.
enum ExplorerThread {
  private static let turn = NSLock()

  /// - Parameter body: Is told whether jobs of tasks without executor are caught.
  static func run<Value: Sendable>(
    _ body: @escaping @Sendable (_ catchesJobs: Bool) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let thread = Thread {
        let result = Result {
          try self.turn.withLock {
            let hooks = RuntimeHooks.install()
            defer { RuntimeHooks.remove(hooks) }
            return try body(hooks.catchesJobs)
          }
        }
        continuation.resume(with: result)
      }
      thread.name = "explorer"
      // Chains of interceptors are deep in debug builds.
      thread.stackSize = 4 << 20
      thread.start()
    }
  }
}
