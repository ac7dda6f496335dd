internal import Connect
internal import Synchronization

/// How a channel sleeps, wakes and ends.
extension OriginChannel {
  /// Connects, or begins to look for endpoints, without a call. May be called from any thread.
  package func connect() {
    self.executor.execute {
      guard !self.isShutDown else { return }
      self.wantsConnection = true
      self.exitIdle()
      self.needsUpdate()
    }
  }

  // MARK: - Idleness

  func scheduleIdleCheck(after delay: Duration) {
    self.idleTimer?.cancel()
    self.idleTimer = nil
    // Tests in virtual time would see a timer, however late it is due.
    guard delay < .longest else { return }
    self.idleTimer = self.schedule(after: max(delay.clamped, .milliseconds(1))) { $0.checkIdle() }
  }

  private func checkIdle() {
    let timeout = max(self.environment.configuration.idleTimeout.clamped, .milliseconds(1))
    let isBusy =
      !self.waiting.isEmpty || self.serviceRules.waitingCount > 0
      || self.retired.values.contains { $0.callCount > 0 }
      || self.subchannels.contains { $0.callCount > 0 || !$0.pool.waiting.isEmpty }
    if isBusy { self.lastUse = self.executor.now }
    let lastUse = self.subchannels.reduce(self.lastUse) { max($0, $1.lastUse) }
    let remaining = timeout - (self.executor.now - lastUse)
    if remaining > .zero {
      self.scheduleIdleCheck(after: remaining)
    } else {
      self.enterIdle()
    }
  }

  /// Forgets the endpoints and closes their connections. The next call looks for them again.
  private func enterIdle() {
    self.stop()
    if self.mayFindRules, !self.isShutDown { self.serviceRules.expectUpdate() }
    self.publish(.idle)
    self.onIdle(self)
  }

  private func stop() {
    self.watch?.cancel()
    self.watch = nil
    self.watchNumber += 1
    for timer in [self.idleTimer, self.resolutionTimer] { timer?.cancel() }
    self.idleTimer = nil
    self.resolutionTimer = nil
    self.leaveOutliers()
    self.forgetPicker()
    self.balancer = nil
    let subchannels = self.subchannels
    self.subchannels = []
    for subchannel in subchannels { self.retire(subchannel) }
  }

  // MARK: - The end

  /// Closes connections as soon as they have no streams. May be called from any thread.
  package func closeWhenIdle() {
    self.executor.execute {
      self.isClosingWhenIdle = true
      for listener in self.published.withLock({ $0.takeListeners() }) { listener.finish() }
      for subchannel in self.subchannels { subchannel.closeWhenIdle() }
    }
  }

  /// Finishes what is under way, and after `limit` fails what is left. May be called from any thread, and again with
  /// another limit; the earliest end counts.
  ///
  /// - Parameter done: Called once nothing is left.
  package func shutDown(within limit: Duration, _ done: @escaping @Sendable () -> Void) {
    self.executor.execute {
      if self.isFinished {
        done()
        return
      }
      self.onFinish.append(done)
      // Calls that wait for rules then wait for a connection, and may finish.
      self.serviceRules.stopExpecting()
      self.isShutDown = true
      self.waitingDidChange()
      _ = self.schedule(after: limit.clamped) { $0.forceShutDown() }
    }
  }

  /// While shutting down: once no call waits, everything is closed.
  func waitingDidChange() {
    guard self.isShutDown, !self.isFinished, self.waiting.isEmpty,
      self.subchannels.allSatisfy({ $0.pool.waiting.isEmpty })
    else { return }
    self.stop()
    self.publish(.shutdown)
    self.finishIfNothingIsLeft()
  }

  private func forceShutDown() {
    guard !self.isFinished else { return }
    let error = ConnectError(
      code: .unavailable,
      message: "the HTTP client was shut down before the call had finished"
    )
    var waiting: [WaitingStream] = []
    while let stream = self.waiting.popFirst() { waiting.append(stream) }
    for subchannel in self.subchannels { waiting += subchannel.pool.takeWaiting() }
    for stream in waiting { stream.fail(error) }
    // Retires all subchannels.
    self.waitingDidChange()
    for subchannel in Array(self.retired.values) { subchannel.forceShutDown(error) }
  }

  /// A subchannel that was retired has no connection left.
  func subchannelFinished(_ subchannel: Subchannel) {
    self.retired.removeValue(forKey: ObjectIdentifier(subchannel))
    self.finishIfNothingIsLeft()
  }

  private func finishIfNothingIsLeft() {
    guard self.isShutDown, self.state == .shutdown, self.retired.isEmpty, !self.isFinished else { return }
    self.isFinished = true
    let callbacks = self.onFinish
    self.onFinish = []
    for callback in callbacks { callback() }
  }
}
