internal import Synchronization

/// A delay, or a failure, or both, that a route gives to a call on purpose (gRFC A33).
package final class CallFault: Sendable {
  /// How many calls of the process are delayed now.
  private static let active = Atomic<Int>(0)

  package let rules: MethodRules?
  package let destination: CallDestination
  private let delay: Duration?
  private let error: ConnectError?
  private let maximumActive: Int

  /// - Parameters:
  ///   - delay: Before anything else; nil for none.
  ///   - error: After the delay; nil if the call then goes on.
  ///   - maximumActive: No call gets a fault while this many are delayed; nil for no limit.
  package init(
    delay: Duration?,
    error: ConnectError?,
    maximumActive: UInt32?,
    _ rules: MethodRules?,
    _ destination: CallDestination
  ) {
    self.delay = delay
    self.error = error
    self.maximumActive = maximumActive.map { Int($0) } ?? .max
    self.rules = rules
    self.destination = destination
  }

  private var mayBegin: Bool { Self.active.load(ordering: .relaxed) < self.maximumActive }

  /// Delays a call, or fails it.
  ///
  /// - Returns: Whether the call goes on at once.
  func lets(_ call: Call) -> Bool {
    guard let delay = self.delay, self.mayBegin else { return self.lets(call, wasDelayed: false) }
    Self.active.wrappingAdd(1, ordering: .relaxed)
    let timer = call.executor.schedule(after: delay.clamped) {
      call.timers.faultDelay.take()?.end()
      guard !call.isOver, self.lets(call, wasDelayed: true), !call.endIfDeadlineHasPassed() else { return }
      call.goOn(with: call.attempts.plan.makeRequestHead())
    }
    call.timers.faultDelay = FaultDelay(timer)
    return false
  }

  /// - Parameter wasDelayed: Whether the call has had its place among those with faults already.
  private func lets(_ call: Call, wasDelayed: Bool) -> Bool {
    guard let error = self.error, wasDelayed || self.mayBegin else { return true }
    call.terminate(with: error)
    return false
  }

  fileprivate static func endDelay() { self.active.wrappingSubtract(1, ordering: .relaxed) }
}

/// The delay of a call, until it is over. Confined to the call's executor.
final class FaultDelay {
  private let timer: any CallTimer

  /// - Parameter timer: Goes on with the call.
  init(_ timer: any CallTimer) {
    self.timer = timer
  }

  /// The delay is over, or its call.
  func end() {
    self.timer.cancel()
    CallFault.endDelay()
  }
}
