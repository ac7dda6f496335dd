/// A call that is under way, to cancel it with. Dropping it changes nothing.
public struct CallHandle: Sendable {
  private weak let call: Call?

  init(_ call: Call) {
    self.call = call
  }

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  public func cancel() {
    self.call?.cancel()
  }
}
