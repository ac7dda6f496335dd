internal import Connect
internal import Metrics
internal import Synchronization

/// gRPC's metrics of one method at one target. Each is made when it first has a value.
final class GRPCInstruments: Sendable {
  private enum Instrument: Sendable {
    case counter(Counter)
    case recorder(Recorder)
    case timer(Timer)
  }

  private static let codeCount = Code.allCases.count

  private let factory: any MetricsFactory
  private let dimensions: [(String, String)]
  private let further: [(String, String)]
  /// By metric and code; metrics without a code are in the place of `ok`.
  private let instruments = Mutex(
    [Instrument?](repeating: nil, count: GRPCCallMetric.allCases.count * codeCount)
  )

  /// - Parameters:
  ///   - method: Without a slash in front.
  ///   - further: Dimensions that the user adds.
  init(_ factory: any MetricsFactory, method: String, target: String, further: [(String, String)]) {
    self.factory = factory
    self.dimensions = [(GRPCLabels.method, method), (GRPCLabels.target, target)]
    self.further = further
  }

  func count(_ metric: GRPCCallMetric) {
    if case .counter(let counter) = self.instrument(metric, nil) { counter.increment() }
  }

  func record(_ value: Int, as metric: GRPCCallMetric, _ code: Code? = nil) {
    if case .recorder(let recorder) = self.instrument(metric, code) { recorder.record(value) }
  }

  func record(_ duration: Duration, as metric: GRPCCallMetric, _ code: Code? = nil) {
    if case .timer(let timer) = self.instrument(metric, code) { timer.record(duration: duration) }
  }

  private func instrument(_ metric: GRPCCallMetric, _ code: Code?) -> Instrument {
    let index = metric.rawValue * Self.codeCount + (code ?? .ok).rawValue
    if let known = self.instruments.withLock({ $0[index] }) { return known }
    // Made outside of the lock, since the backend is other people's code. If another thread was faster, its instrument
    // stays, and the backend knows both as one.
    let made = self.make(metric.description, code)
    return self.instruments.withLock { instruments in
      if let other = instruments[index] { return other }
      instruments[index] = made
      return made
    }
  }

  private func make(_ description: MetricDescription, _ code: Code?) -> Instrument {
    var dimensions = self.dimensions
    if let code { dimensions.append((GRPCLabels.status, code.grpcName)) }
    dimensions += self.further
    let name = description.name
    switch (description.kind, description.unit) {
    case (.counter, _), (.upDownCounter, _):
      return .counter(Counter(label: name, dimensions: dimensions, factory: self.factory))
    case (.histogram, "s"):
      return .timer(
        Timer(label: name, dimensions: dimensions, preferredDisplayUnit: .seconds, factory: self.factory)
      )
    case (.histogram, _):
      return .recorder(Recorder(label: name, dimensions: dimensions, aggregate: true, factory: self.factory))
    }
  }
}

/// What gRPC's metrics say of one call. Confined to the call's executor, like the interceptor that owns it.
struct GRPCCallRecord {
  private let instruments: GRPCInstruments
  private var counts: [AttemptKind: Int] = [:]
  private var retryDelay = Duration.zero

  init(_ instruments: GRPCInstruments) {
    self.instruments = instruments
  }

  mutating func note(_ event: AttemptEvent) {
    switch event {
    case .started(let start):
      self.instruments.count(.attemptStarted)
      self.retryDelay += start.idleTime
      if start.kind != .original { self.counts[start.kind, default: 0] += 1 }
    case .ended(let record):
      self.instruments.record(record.duration, as: .attemptDuration, record.code)
      self.instruments.record(record.sentMessageBytes, as: .attemptSent, record.code)
      self.instruments.record(record.receivedMessageBytes, as: .attemptReceived, record.code)
    }
  }

  /// The call has ended. Attempts that it has abandoned may end later.
  mutating func end(_ code: Code, after duration: Duration) {
    self.instruments.record(duration, as: .callDuration, code)
    for (kind, count) in self.counts {
      switch kind {
      case .original: break
      case .retry: self.instruments.record(count, as: .retries)
      case .hedge: self.instruments.record(count, as: .hedges)
      case .transparentRetry: self.instruments.record(count, as: .transparentRetries)
      }
    }
    // Also zero, unlike the counts (gRFC A96).
    self.instruments.record(self.retryDelay, as: .retryDelay)
    self.counts = [:]
    self.retryDelay = .zero
  }
}
