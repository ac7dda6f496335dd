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

  /// The hooks that stood there before; nil for none.
  struct Installed {
    fileprivate var earlier: [(slot: UnsafeMutablePointer<UnsafeRawPointer?>, hook: UnsafeRawPointer?)] = []
    /// Whether jobs are caught.
    fileprivate(set) var catchesJobs = false
  }

  /// To be called on the thread of the exploration.
  static func install() -> Installed {
    var installed = Installed()
    ExplorationThread.number.store(ExplorerExecutor.currentThread, ordering: .sequentiallyConsistent)
    guard let program = dlopen(nil, RTLD_NOW) else { return installed }
    defer { dlclose(program) }
    let enqueue: EnqueueHook = { job, original in
      if let executor = ExplorationThread.executor { executor.take(job) } else { original(job) }
    }
    let delayed: DelayedHook = { delay, job, original in
      if let executor = ExplorationThread.executor {
        executor.take(job, after: .nanoseconds(Int64(clamping: delay)).rounded)
      } else {
        original(delay, job)
      }
    }
    let hooks = [
      ("swift_task_enqueueGlobal_hook", unsafeBitCast(enqueue, to: UnsafeRawPointer.self)),
      ("swift_task_enqueueGlobalWithDelay_hook", unsafeBitCast(delayed, to: UnsafeRawPointer.self)),
    ]
    for (name, hook) in hooks {
      guard let slot = dlsym(program, name)?.assumingMemoryBound(to: UnsafeRawPointer?.self) else { continue }
      // Somebody else's hook, such as NIO's, stays as it is.
      guard slot.pointee == nil else { continue }
      installed.earlier.append((slot, slot.pointee))
      slot.pointee = hook
      if name == "swift_task_enqueueGlobal_hook" { installed.catchesJobs = true }
    }
    return installed
  }

  static func remove(_ installed: Installed) {
    for (slot, hook) in installed.earlier { slot.pointee = hook }
    ExplorationThread.number.store(0, ordering: .sequentiallyConsistent)
  }
}

/// The thread on which an exploration runs now.
enum ExplorationThread {
  /// 0 if there is none.
  static let number = Atomic<UInt>(0)
  /// Touched on the exploration's thread alone.
  nonisolated(unsafe) private static var current: ExplorerExecutor?

  /// The executor of the current run; nil on all other threads.
  static var executor: ExplorerExecutor? {
    self.number.load(ordering: .relaxed) == ExplorerExecutor.currentThread ? self.current : nil
  }

  /// Makes jobs go to `executor`. To be called on the exploration's thread.
  static func use(_ executor: ExplorerExecutor?) { self.current = executor }
}
