/// A call that can be cancelled. Dropping it does not cancel.
public struct Cancelable: Sendable {
  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  public let cancel: @Sendable () -> Void

  /// - Parameter cancel: What ``cancel`` is to do; it may be called more than once, from any thread.
  public init(cancel: @escaping @Sendable () -> Void) {
    self.cancel = cancel
  }
}
