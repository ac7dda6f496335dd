internal import Foundation
internal import Synchronization

/// Catches the jobs of tasks without executor that the exploration's thread makes, so that they are part of the schedule.
///
/// The runtime calls a hook in place of its pool, if there is one. Jobs of all other threads go to the pool as ever. Without
/// the hook (a program without dynamic symbols), tasks run in the pool, and ``ExplorerRun`` waits for them.
enum RuntimeHooks {
  // The types are those of the runtime: `swift_task_enqueueGlobal_hook` and its siblings.
  fileprivate typealias Enqueue = @convention(thin) (UnownedJob) -> Void
  fileprivate typealias EnqueueHook = @convention(thin) (UnownedJob, Enqueue) -> Void
  fileprivate typealias Delayed = @convention(thin) (UInt64, UnownedJob) -> Void
  fileprivate typealias DelayedHook = @convention(thin) (UInt64, UnownedJob, Delayed) -> Void

  /// Whether `Task.sleep` asks the executor of the task, as `ExplorerExecutor` needs it.
  #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
  static let sleepIsVirtual = true
  #else
  static let sleepIsVirtual = false
  #endif

  /// Hooks that an exploration has set.
  struct Installed: Sendable {
    fileprivate let hooks: [(slot: Slot, hook: UInt)]
    /// Whether jobs are caught.
    let catchJobs: Bool

    /// Takes the hooks away, but those that somebody else has replaced by now.
    func remove() {
      for (slot, hook) in self.hooks { slot.change(from: hook, to: 0) }
    }
  }

  /// Where the runtime keeps a hook.
  ///
  /// `@unchecked Sendable`: touched by atomic operations alone.
  fileprivate struct Slot: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<Atomic<UInt>>

    /// - Parameter program: What `dlopen` has returned for the whole program.
    init?(_ name: String, in program: UnsafeMutableRawPointer) {
      guard let address = dlsym(program, name) else { return nil }
      self.pointer = address.assumingMemoryBound(to: Atomic<UInt>.self)
    }

    /// - Returns: Whether it was `old`.
    @discardableResult
    func change(from old: UInt, to new: UInt) -> Bool {
      self.pointer.pointee.compareExchange(expected: old, desired: new, ordering: .sequentiallyConsistent)
        .exchanged
    }
  }

  /// Sets the hooks for all threads. Only those that ``ExplorationThread`` knows are affected.
  static func install() -> Installed {
    guard let program = dlopen(nil, RTLD_NOW) else { return Installed(hooks: [], catchJobs: false) }
    defer { dlclose(program) }
    let enqueue: EnqueueHook = { job, original in
      if let executor = ExplorationThread.executor { executor.take(job) } else { original(job) }
    }
    let delayed: DelayedHook = { delay, job, original in
      if let executor = ExplorationThread.executor {
        executor.take(job, after: .nanoseconds(Int64(clamping: delay)))
      } else {
        original(delay, job)
      }
    }
    let main = Self.set(unsafeBitCast(enqueue, to: UInt.self), "swift_task_enqueueGlobal_hook", program)
    let other = Self.set(
      unsafeBitCast(delayed, to: UInt.self),
      "swift_task_enqueueGlobalWithDelay_hook",
      program
    )
    return Installed(hooks: [main, other].compactMap(\.self), catchJobs: main != nil)
  }

  private static func set(
    _ hook: UInt,
    _ name: String,
    _ program: UnsafeMutableRawPointer
  ) -> (slot: Slot, hook: UInt)? {
    guard let slot = Slot(name, in: program) else { return nil }
    // Somebody else's hook, such as NIO's, stays as it is.
    return slot.change(from: 0, to: hook) ? (slot, hook) : nil
  }
}

/// Which run the calling thread works for.
enum ExplorationThread {
  private static let key: pthread_key_t? = {
    var key = pthread_key_t()
    return pthread_key_create(&key, nil) == 0 ? key : nil
  }()

  /// The executor of the current run; nil on threads that explore nothing.
  static var executor: ExplorerExecutor? {
    guard let key = self.key, let pointer = pthread_getspecific(key) else { return nil }
    return Unmanaged<ExplorerExecutor>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Makes jobs of the calling thread go to `executor` while `body` runs.
  static func use<Value>(_ executor: ExplorerExecutor, _ body: () throws -> Value) rethrows -> Value {
    guard let key = self.key else { return try body() }
    pthread_setspecific(key, Unmanaged.passUnretained(executor).toOpaque())
    defer { pthread_setspecific(key, nil) }
    return try withExtendedLifetime(executor, body)
  }
}
