/// Cancels a call in flight. Dropping it does not cancel.
///
/// A call fails with `internal` when nothing can end or continue it any more. This happens if an interceptor has
/// released `proceed`, the call has no deadline, and no handle is left.
public struct CallHandle: Sendable {
  private let call: Call

  init(_ call: Call) {
    self.call = call
  }

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  public func cancel() {
    self.call.cancel()
  }
}
