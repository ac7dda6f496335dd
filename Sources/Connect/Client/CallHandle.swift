/// A call that is under way, to cancel it with. Dropping it does not cancel.
///
/// A call that nobody can end or go on with any more, since an interceptor has let go of `proceed`, the call has
/// no deadline, and no handle is left, fails with `internal`.
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
