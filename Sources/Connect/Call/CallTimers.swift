/// What a call holds until it ends: its cancellable waits, and where it goes.
struct CallTimers {
  /// Will end the call.
  var deadline: (any CallTimer)?
  /// Nil unless an interceptor holds the call up.
  var holdWatch: HoldWatch?
  /// Nil unless the service's rules are not known yet.
  var ruleWait: ServiceRules.Wait?
  /// Nil unless a fault delays the call on purpose.
  var faultDelay: FaultDelay?
  /// Where the call's route leads; nil if no route has chosen. It holds a cluster, and a program may hold a call that is over.
  var destination: CallDestination?

  func cancelAll() {
    self.deadline?.cancel()
    self.holdWatch?.cancel()
    self.ruleWait?.cancel()
    self.faultDelay?.end()
  }
}
