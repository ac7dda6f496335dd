internal import Connect
internal import Logging

/// Has an endpoint's server report its load on a separate stream.
extension Subchannel {
  /// Asks for a report in each `period` from now on; nil for none.
  func watchLoad(every period: Duration?) {
    guard period != self.loadWatch?.period else { return }
    self.stopLoadWatch()
    self.loadWatch = period.map { LoadWatch(every: $0) }
    self.restartLoadWatch()
  }

  /// Begins a watch on a connection that takes streams, in place of the one before.
  func restartLoadWatch() {
    guard self.loadWatch != nil else { return }
    self.stopLoadWatch()
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
      self.startWatch(request, handler)
    }
    if watch.isUnderWay {
      self.loadWatch?.watch = watch
    } else {
      // All streams are taken.
      self.restartLoadWatch(after: .seconds(1))
    }
  }

  func stopLoadWatch() {
    self.loadWatch?.timer.take()?.cancel()
    let watch = self.loadWatch?.watch
    self.loadWatchDidEnd()
    watch?.cancel()
  }

  private func loadWatchDidEnd() {
    if self.loadWatch?.watch.take() != nil { self.counters.endedWatches += 1 }
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
      self.loadWatchDidEnd()
      self.warnOnce(
        &self.hasWarnedOfLoad,
        "the server has no load reports on a stream, or no HTTP/2 for them, so its weight is that of the others"
      )
    case .ended:
      self.loadWatchDidEnd()
      guard let delay = self.loadWatch?.backoff.next(random: &self.random) else { return }
      self.restartLoadWatch(after: delay)
    }
  }
}
