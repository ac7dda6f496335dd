/// The cancellable waits of a call.
struct CallTimers {
  /// Will end the call.
  var deadline: (any CallTimer)?
  /// Nil unless an interceptor holds the call up.
  var holdWatch: HoldWatch?
  /// Nil unless the service's rules are not known yet.
  var ruleWait: ServiceRules.Wait?

  func cancelAll() {
    self.deadline?.cancel()
    self.holdWatch?.cancel()
    self.ruleWait?.cancel()
  }
}
