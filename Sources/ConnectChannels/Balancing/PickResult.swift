/// A picker's answer for a call.
public enum PickResult: Sendable, Hashable {
  /// The call goes to an endpoint, which is ready. `connect` names an idle one that should connect meanwhile.
  /// `additions` are metadata for the call, and the cluster's name.
  case endpoint(EndpointID, connect: EndpointID? = nil, additions: PickAdditions? = nil)
  /// The call waits for the next picker.
  case wait
  /// The call waits for the next picker, and this endpoint should connect if it is idle.
  case connect(EndpointID)
  /// The call fails with `unavailable` and this message, unless it waits until the channel is ready.
  case fail(String)
  // Indirect, so that the results of other calls stay small.
  /// The call fails at once with `unavailable`, also one that waits until the channel is ready. It is not retried nor hedged
  /// further. A hedge that is dropped ends its call: attempts of the call that still run are cancelled. For calls that are kept
  /// away from servers which are overloaded; the error names the category. `cluster` is the cluster that drops it, for
  /// observers and the error; nil for the channel's own.
  indirect case drop(category: String, cluster: String? = nil)
}
