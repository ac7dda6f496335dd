internal import Synchronization

/// Keeps contexts that are costly to set up between uses, and gives each context to one user at a time.
final class ContextPool<Context: AnyObject>: Sendable {
  /// A context that nobody uses.
  ///
  /// `@unchecked Sendable`: nothing but this refers to the context. Under the pool's lock it comes in from one user and goes
  /// out to another.
  private struct Idle: @unchecked Sendable {
    let context: Context
  }

  /// How many are kept while nobody uses them.
  private static var maximumIdleCount: Int { 8 }

  private let idle = Mutex<[Idle]>([])
  private let make: @Sendable () throws -> Context

  init(_ make: @escaping @Sendable () throws -> Context) {
    self.make = make
  }

  /// Runs `body` with a context that nobody else uses meanwhile. The context is in the state in which its last user
  /// left it.
  func withContext<Result>(_ body: (Context) throws -> Result) throws -> Result {
    let idle = try self.idle.withLock { $0.popLast() } ?? Idle(context: self.make())
    defer {
      self.idle.withLock { if $0.count < Self.maximumIdleCount { $0.append(idle) } }
    }
    return try body(idle.context)
  }
}
