internal import Synchronization

/// Keeps what is costly to set up between uses, and gives each to one user at a time.
final class ContextPool<Context: AnyObject & Sendable>: Sendable {
  /// How many are kept while nobody uses them.
  private static var maximumIdleCount: Int { 8 }

  private let idle = Mutex<[Context]>([])
  private let make: @Sendable () throws -> Context

  init(_ make: @escaping @Sendable () throws -> Context) {
    self.make = make
  }

  /// Runs `body` with a context that nobody else uses meanwhile. It is as its last user left it.
  func withContext<Result>(_ body: (Context) throws -> Result) throws -> Result {
    let context = try self.idle.withLock { $0.popLast() } ?? self.make()
    defer {
      self.idle.withLock { if $0.count < Self.maximumIdleCount { $0.append(context) } }
    }
    return try body(context)
  }
}
