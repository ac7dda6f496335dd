internal import Connect

/// The endpoint of all calls of a channel, while there is one. Nothing holds it weakly, so that calls take few steps to hold it.
final class SingleEndpoint {
  private let subchannel: Subchannel
  /// What limits the calls; nil if nothing does.
  private let limits: LimitedPicker?
  /// What is added to each call.
  private let additions: PickAdditions?

  /// Nil if calls have to ask the picker.
  init?(of picker: any Picker, in subchannels: SubchannelTable) {
    let limits = picker as? LimitedPicker
    guard let (id, additions) = limits.map(\.constant) ?? (picker as? ConstantPicker)?.endpoint,
      let subchannel = subchannels[id]
    else { return nil }
    self.subchannel = subchannel
    self.limits = limits
    self.additions = additions
  }

  /// Starts a call; nil if it has to ask the picker, since there is no room for it.
  func start(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) -> (any HTTPStream)? {
    if let limits = self.limits, !limits.hasRoom { return nil }
    return self.subchannel.start(request, handler, self.additions)
  }
}

/// A picker that a channel uses. To hold it takes fewer steps than to copy a picker of any type.
final class CurrentPicker {
  let picker: any Picker

  init(_ picker: any Picker) {
    self.picker = picker
  }
}
