internal import Synchronization

/// A delay, or a failure, or both, that a route gives to a call on purpose (gRFC A33).
package final class CallFault: Sendable {
  /// How many calls of the process are delayed now.
  private static let active = Atomic<Int>(0)

  package let rules: MethodRules
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
    _ rules: MethodRules,
    _ destination: CallDestination
  ) {
    self.delay = delay
    self.error = error
    self.maximumActive = maximumActive.map { Int($0) } ?? .max
    self.rules = rules
    self.destination = destination
  }

  private var mayBegin: Bool { Self.active.load(ordering: .relaxed) < self.maximumActive }

  /// How long the call is delayed; nil for not at all. ``endDelay()`` has to follow a delay.
  func beginDelay() -> Duration? {
    guard let delay = self.delay, self.mayBegin else { return nil }
    Self.active.wrappingAdd(1, ordering: .relaxed)
    return delay
  }

  func endDelay() { Self.active.wrappingSubtract(1, ordering: .relaxed) }

  /// How the call ends before its first attempt; nil if it goes on.
  ///
  /// - Parameter wasDelayed: Whether the call has had its place among those with faults already.
  func failure(wasDelayed: Bool) -> ConnectError? {
    wasDelayed || self.mayBegin ? self.error : nil
  }
}

/// The delay of a call, until it is over. Confined to the call's executor.
final class FaultDelay {
  private let fault: CallFault
  private let timer: any CallTimer

  /// - Parameter timer: Goes on with the call.
  init(_ fault: CallFault, _ timer: any CallTimer) {
    self.fault = fault
    self.timer = timer
  }

  /// The delay is over, or its call.
  func end() {
    self.timer.cancel()
    self.fault.endDelay()
  }
}
