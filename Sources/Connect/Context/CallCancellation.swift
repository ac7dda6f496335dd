internal import Synchronization

/// Cancels all calls that belong to it at once, also calls whose caller does not wait for them in the cancelled task.
///
/// A call belongs to the `cancellation` of its ``CallContext``. ``CallContext/withValues(_:isolation:operation:)``
/// creates a cancellation for its operation.
public final class CallCancellation: Sendable {
  private enum State: Sendable {
    /// Members that are gone are removed from time to time.
    case active([Member], sizeAfterSweep: Int)
    case cancelled
  }

  private struct Member: Sendable {
    weak var target: (any Cancellable)?
  }

  private let state = Mutex(State.active([], sizeAfterSweep: 0))

  /// A cancellation without calls. Put it into ``CallContext/cancellation`` of the calls that it is to cancel.
  public init() {}

  /// Whether ``cancel()`` was called. It stays true.
  public var isCancelled: Bool {
    self.state.withLock { if case .cancelled = $0 { true } else { false } }
  }

  /// Cancels all calls that belong to it now, and all that are made later.
  public func cancel() {
    let members = self.state.withLock { state -> [Member] in
      guard case .active(let members, _) = state else { return [] }
      state = .cancelled
      return members
    }
    for member in members { member.target?.cancel() }
  }

  /// Cancels `target` together with this object. Holds it weakly.
  func add(_ target: any Cancellable) {
    let isCancelled = self.state.withLock { state in
      guard case .active(var members, var sizeAfterSweep) = state else { return true }
      state = .cancelled  // So that the array is not copied.
      members.append(Member(target: target))
      // Sweep once half of the members may be gone: amortised O(1) per added member.
      if members.count > 2 * sizeAfterSweep + 16 {
        members.removeAll { $0.target == nil }
        sizeAfterSweep = members.count
      }
      state = .active(members, sizeAfterSweep: sizeAfterSweep)
      return false
    }
    if isCancelled { target.cancel() }
  }

  /// How many members are kept, gone ones included.
  var memberCount: Int {
    self.state.withLock { if case .active(let members, _) = $0 { members.count } else { 0 } }
  }
}

/// What a ``CallCancellation`` cancels: calls, and other cancellations.
protocol Cancellable: AnyObject, Sendable {
  func cancel()
}

extension CallCancellation: Cancellable {}
