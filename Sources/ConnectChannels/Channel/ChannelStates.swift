/// The state of a channel as other threads see it, and the listeners for its changes.
struct ChannelStates {
  private(set) var state = ConnectivityState.idle
  private var listeners: [Int: AsyncStream<ConnectivityState>.Continuation] = [:]
  private var nextListener = 0

  /// - Returns: The listeners to finish after the last state. Do not finish them under a lock, since that calls out.
  mutating func publish(_ state: ConnectivityState) -> [AsyncStream<ConnectivityState>.Continuation] {
    self.state = state
    for listener in self.listeners.values { listener.yield(state) }
    return state == .shutdown ? self.takeListeners() : []
  }

  mutating func takeListeners() -> [AsyncStream<ConnectivityState>.Continuation] {
    defer { self.listeners = [:] }
    return Array(self.listeners.values)
  }

  /// - Returns: The listener's number, for ``remove(_:)``.
  mutating func add(_ listener: AsyncStream<ConnectivityState>.Continuation) -> Int {
    listener.yield(self.state)
    // The listener's termination handler is not set yet.
    if self.state == .shutdown { listener.finish() } else { self.listeners[self.nextListener] = listener }
    defer { self.nextListener += 1 }
    return self.nextListener
  }

  mutating func remove(_ number: Int) {
    self.listeners[number] = nil
  }
}
