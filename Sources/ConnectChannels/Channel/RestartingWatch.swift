internal import Connect

/// A ``ServerWatch`` that starts again after its end: with a backoff, unless the method says otherwise. Confined to the
/// channel's executor.
///
/// A server that does not have the method is asked again on its next connection.
final class RestartingWatch<Answer: Sendable> {
  private let method: WatchMethod<Answer>
  private weak var endpoint: EndpointWatches?
  private let report: (ServerWatch<Answer>.Event) -> Void
  private var random: SeededRandom
  private var backoff = ConnectionBackoff()
  private var watch: ServerWatch<Answer>?
  private var timer: (any CallTimer)?
  /// Whether the current watch, or one since the last connection, has brought an answer.
  private var hasAnswered = false
  private var hasWarned = false

  init(
    _ method: WatchMethod<Answer>,
    at endpoint: EndpointWatches,
    seed: UInt64,
    report: @escaping (ServerWatch<Answer>.Event) -> Void
  ) {
    self.method = method
    self.endpoint = endpoint
    self.random = SeededRandom(seed: seed)
    self.report = report
  }

  /// Whether there is a stream.
  var isUnderWay: Bool { self.watch != nil }

  /// Begins a watch on a connection that takes streams, in place of the one before.
  func restart() {
    self.cancel()
    guard let endpoint = self.endpoint, let version = endpoint.connectedVersion else { return }
    guard version != .http1 else {
      self.received(.unimplemented)
      return
    }
    let watch = ServerWatch(self.method) { [weak self] event in
      self?.received(event)
    } start: { request, handler in
      endpoint.startWatch(request, handler)
    }
    if watch.isUnderWay {
      self.watch = watch
    } else {
      // All streams are taken.
      self.restart(after: .seconds(1))
    }
  }

  /// The connection is gone, or nobody wants answers.
  func stop() {
    self.cancel()
    self.hasAnswered = false
    self.backoff.reset()
  }

  private func restart(after delay: Duration) {
    self.timer = self.endpoint?.executor.schedule(after: delay, with: self) { $0.restart() }
  }

  private func cancel() {
    self.timer.take()?.cancel()
    let watch = self.watch
    self.watchDidEnd()
    watch?.cancel()
  }

  private func watchDidEnd() {
    if self.watch.take() != nil { self.endpoint?.watchDidEnd() }
  }

  private func received(_ event: ServerWatch<Answer>.Event) {
    self.report(event)
    switch event {
    case .answer:
      self.hasAnswered = true
      self.backoff.reset()
    case .unimplemented:
      self.watchDidEnd()
      // Once: a server that closes each connection would otherwise cause a warning each time.
      if !self.hasWarned { self.endpoint?.warn(self.method.warning) }
      self.hasWarned = true
    case .ended:
      self.watchDidEnd()
      if self.method.restartsAtOnce, self.hasAnswered {
        self.hasAnswered = false
        self.restart()
      } else {
        self.restart(after: self.backoff.next(random: &self.random))
      }
    }
  }
}
