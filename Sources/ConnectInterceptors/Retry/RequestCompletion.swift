internal import Logging
private import Synchronization

/// What an adapter or a retrier in callback form answers with. It is called once, at once or later, from any thread:
///
/// ```swift
/// let token = Adapter { request, _, completion in
///   login.getToken(request: .with { $0.clientID = id }) { response in
///     completion(
///       Result {
///         var request = request
///         request.headers["x-token"] = [try response.get().token]
///         return request
///       }
///     )
///   }
/// }
/// ```
///
/// A second call does nothing, except that it logs a warning. When the last copy is released uncalled, the RPC fails with
/// `internal`. An answer that comes after the end of the RPC does nothing.
public struct RequestCompletion<Answer: Sendable>: Sendable {
  private let handle: Handle

  /// Answers.
  public func callAsFunction(_ answer: Answer) {
    guard !self.handle.slot.fill(answer) else { return }
    Logger(label: "connect").warning("an adapter or a retrier has called its completion twice")
  }

  /// Sets what to do if the RPC ends before the answer, for example to cancel a request. It is called once; at once if the RPC
  /// has ended. A later `body` replaces an earlier one.
  ///
  /// - Parameter body: Called on any thread; it must not block. As long as it holds this completion, the release of all other
  ///   copies is not noticed before the end of the RPC.
  public func onCancel(_ body: @escaping @Sendable () -> Void) {
    self.handle.slot.onCancel(body)
  }

  /// Calls `body` and waits for its answer. It is not called if the task is already cancelled.
  ///
  /// - Parameters:
  ///   - ifReleased: The answer if the completion is released uncalled.
  ///   - ifCancelled: The answer if the task is cancelled before the answer.
  static func wait(
    ifReleased: Answer,
    ifCancelled: Answer,
    _ body: @escaping @Sendable (Self) -> Void
  ) async -> Answer {
    let slot = AnswerSlot<Answer>()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        guard slot.wait(continuation, ifCancelled: ifCancelled) else { return }
        body(Self(handle: Handle(slot, ifReleased: ifReleased)))
      }
    } onCancel: {
      slot.cancel()
    }
  }

  /// Shared by the copies of a completion.
  private final class Handle: Sendable {
    let slot: AnswerSlot<Answer>
    private let ifReleased: Answer

    init(_ slot: AnswerSlot<Answer>, ifReleased: Answer) {
      self.slot = slot
      self.ifReleased = ifReleased
    }

    deinit {
      guard self.slot.isWaiting else { return }
      let (slot, answer) = (self.slot, self.ifReleased)
      // In a task, since a copy may be released under a lock that the waiting task's executor takes.
      Task.detached { _ = slot.fill(answer) }
    }
  }
}

/// Where a task waits for one answer.
private final class AnswerSlot<Answer: Sendable>: Sendable {
  private enum State {
    case new
    case waiting(CheckedContinuation<Answer, Never>, ifCancelled: Answer, onCancel: (@Sendable () -> Void)?)
    case cancelled
    case answered
  }

  private let state = Mutex(State.new)

  var isWaiting: Bool {
    self.state.withLock { if case .waiting = $0 { true } else { false } }
  }

  /// - Returns: Whether there is something to wait for: false if the task is already cancelled.
  func wait(_ continuation: CheckedContinuation<Answer, Never>, ifCancelled: Answer) -> Bool {
    let isWaiting = self.state.withLock { state in
      if case .cancelled = state { return false }
      state = .waiting(continuation, ifCancelled: ifCancelled, onCancel: nil)
      return true
    }
    if !isWaiting { continuation.resume(returning: ifCancelled) }
    return isWaiting
  }

  /// - Returns: False for a second answer.
  func fill(_ answer: Answer) -> Bool {
    let old = self.state.withLock { state in
      let old = state
      if case .waiting = old { state = .answered }
      return old
    }
    if case .waiting(let continuation, _, _) = old { continuation.resume(returning: answer) }
    if case .answered = old { return false }
    return true
  }

  func cancel() {
    let old = self.state.withLock { state in
      let old = state
      if case .answered = old { return old }
      state = .cancelled
      return old
    }
    guard case .waiting(let continuation, let answer, let onCancel) = old else { return }
    continuation.resume(returning: answer)
    onCancel?()
  }

  func onCancel(_ body: @escaping @Sendable () -> Void) {
    let old = self.state.withLock { state in
      let old = state
      if case .waiting(let continuation, let answer, _) = old {
        state = .waiting(continuation, ifCancelled: answer, onCancel: body)
      }
      return old
    }
    if case .cancelled = old { body() }
  }
}
