/// Chooses endpoints for calls, until the balancer makes another picker.
///
/// A picker is confined to the event loop of its channel, so it may count without locks. It is asked once for each
/// attempt of a call: it must not block and should not allocate.
public protocol Picker {
  /// Chooses an endpoint for a call, or says that the call waits or fails.
  func pick(_ call: borrowing PickContext) -> PickResult
}

/// Gives the same answer for all calls.
public struct ConstantPicker: Picker {
  /// The answer for all calls.
  public let result: PickResult

  /// A picker with one answer.
  public init(_ result: PickResult) {
    self.result = result
  }

  public func pick(_ call: borrowing PickContext) -> PickResult { self.result }

  /// The endpoint of all calls, and what is added to them; nil if there is none.
  var endpoint: (EndpointID, PickAdditions?)? {
    if case .endpoint(let id, nil, let additions) = self.result { (id, additions) } else { nil }
  }
}
