internal import Connect
internal import Logging

/// Has an endpoint's server report its load on a stream of its own.
extension Subchannel {
  /// Asks for a report in each `period` from now on; nil for none.
  func watchLoad(every period: Duration?) {
    guard period != self.loadWatch?.period else { return }
    self.loadWatch?.stop()
    self.loadWatch = period.map { LoadWatch(every: $0) }
    self.restartLoadWatch()
  }

  /// Begins a watch on a connection that takes streams, in place of the one before.
  func restartLoadWatch() {
    guard self.loadWatch != nil else { return }
    self.loadWatch?.stop()
    guard self.isReady, let period = self.loadWatch?.period else { return }
    guard self.pool.version != .http1 else {
      self.received(.unimplemented)
      return
    }
    let watch = ServerWatch<LoadReport>(
      path: LoadReportMessages.path,
      request: LoadReportMessages.request(every: period),
      largestAnswer: LoadReportMessages.largestAnswer,
      decode: LoadReport.init(decoding:)
    ) { [weak self] event in
      self?.received(event)
    } start: { request, handler in
      self.pool.leaseConnection()?.connection?.startStream(request, handler: handler)
    }
    if watch.isUnderWay {
      self.loadWatch?.watch = watch
    } else {
      // All streams are taken.
      self.restartLoadWatch(after: .seconds(1))
    }
  }

  private func restartLoadWatch(after delay: Duration) {
    self.loadWatch?.timer = self.schedule(after: delay) { $0.restartLoadWatch() }
  }

  private func received(_ event: ServerWatch<LoadReport>.Event) {
    switch event {
    case .answer(let report):
      self.loadWatch?.backoff.reset()
      self.tracker?.loads.record(report, of: self.id, now: self.now)
    case .unimplemented:
      self.loadWatch?.watch = nil
      self.environment.logger.warning(
        "the server has no load reports on a stream, or no HTTP/2 for them, so its weight is that of the others",
        metadata: ["origin": "\(self.peer)", "endpoint": "\(self.endpoint)"]
      )
    case .ended:
      self.loadWatch?.watch = nil
      guard let delay = self.loadWatch?.backoff.next(random: &self.random) else { return }
      self.restartLoadWatch(after: delay)
    }
  }
}
