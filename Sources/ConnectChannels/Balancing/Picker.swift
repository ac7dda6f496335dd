/// Chooses endpoints for calls, until the balancer makes another picker.
///
/// A picker is confined to the event loop of its channel, so it may count without locks. It is asked once for each
/// attempt of a call: it must not block and should not allocate.
public protocol Picker {
  func pick(_ call: borrowing PickContext) -> PickResult
}

/// Says the same of all calls.
public struct ConstantPicker: Picker {
  public let result: PickResult

  public init(_ result: PickResult) {
    self.result = result
  }

  public func pick(_ call: borrowing PickContext) -> PickResult { self.result }
}
