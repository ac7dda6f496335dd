internal import NIOCore

/// The one timer of a connection.
///
/// What libngtcp2 waits for changes with each packet, and mostly to later. A timer that is early does no harm: when it fires,
/// the next one is set.
struct HTTP3Timer {
  private var scheduled: Scheduled<Void>?
  private var time: UInt64 = .max

  /// - Parameter time: When `work` is to run at the latest; nil for never.
  mutating func set(to time: UInt64?, on eventLoop: any EventLoop, _ work: @escaping () -> Void) {
    guard let time else { return }
    guard time < self.time else { return }
    self.scheduled?.cancel()
    self.time = time
    let deadline = NIODeadline.uptimeNanoseconds(time)
    self.scheduled = eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { work() }
  }

  mutating func didFire() {
    self.scheduled = nil
    self.time = .max
  }

  mutating func cancel() {
    self.scheduled?.cancel()
    self.didFire()
  }
}
