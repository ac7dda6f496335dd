internal import Connect
internal import Synchronization

/// What routes and calls hold to keep clusters alive: one handle for a name, shared by all channels to an origin. So a call
/// keeps its cluster in each channel that it may use: its attempts may go to channels of several versions of HTTP.
package final class ClusterHandles: Sendable {
  private struct State {
    /// Until nothing holds the handle. The numbers tell a handle from an earlier one of the same name.
    var handles: [String: (number: Int, handle: Weak<CallCluster>)] = [:]
    var listeners: [(number: Int, listener: @Sendable (String) -> Void)] = []
    var lastNumber = 0

    mutating func number() -> Int {
      self.lastNumber += 1
      return self.lastNumber
    }
  }

  private let state = Mutex(State())

  /// The handle of a cluster; makes it if nothing holds it.
  func handle(_ name: String, of origin: Origin) -> CallCluster {
    self.state.withLock { state in
      if let known = state.handles[name]?.handle.object { return known }
      let number = state.number()
      let handle = CallCluster(name, of: origin) { [weak self] in self?.released(name, number) }
      state.handles[name] = (number, Weak(handle))
      return handle
    }
  }

  /// Whether routes or calls of any channel hold the cluster.
  func isHeld(_ name: String) -> Bool {
    // Does not touch the handle: its last release must not be in here.
    self.state.withLock { $0.handles[name] != nil }
  }

  /// - Parameter listener: Called on any thread once nothing holds a cluster. It may have come back meanwhile.
  /// - Returns: For ``stopListening(_:)``.
  func listen(_ listener: @escaping @Sendable (String) -> Void) -> Int {
    self.state.withLock { state in
      let number = state.number()
      state.listeners.append((number, listener))
      return number
    }
  }

  func stopListening(_ number: Int) {
    self.state.withLock { $0.listeners.removeAll { $0.number == number } }
  }

  private func released(_ name: String, _ number: Int) {
    let listeners = self.state.withLock { state in
      if state.handles[name]?.number == number { state.handles[name] = nil }
      return state.listeners
    }
    for (_, listener) in listeners { listener(name) }
  }
}
