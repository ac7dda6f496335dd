internal import Connect
internal import ConnectTesting

/// Counts what happens in a run, and checks that nothing happens that must not.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and before a run by the one who prepares it.
final class RunRecorder: @unchecked Sendable {
  /// How many violations are kept.
  private static let maximumViolations = 20
  private static let intervalCount = 60

  private struct Interval {
    var succeeded = 0
    var failed = 0
    var requests = 0
    var latencies = Histogram()
  }

  /// From a client's zone to a server's.
  private struct Way: Hashable {
    var from: String
    var to: String
  }

  private let executor: SimulationExecutor
  private(set) var trace = TraceHash()
  private var start = Duration.zero
  private var intervalLength = Duration.seconds(1)
  private var intervals: [Interval] = []
  private var latencies = Histogram()
  private var failures: [String: Int] = [:]
  private var succeeded = 0
  private var requests = 0
  private var traffic: [Way: Int] = [:]
  private(set) var startedCalls = 0
  private(set) var endedCalls = 0
  private(set) var violations: [String] = []
  /// Violations of the program before a run, for the report of that run.
  private var mistakes: [String] = []
  private var isRunning = false
  /// The price of a request to another zone.
  var costOfCrossing = 0.0
  /// How many requests of a call a server may see at most.
  var maximumAttempts = 10
  weak var cluster: SimulatedCluster?

  init(on executor: SimulationExecutor) {
    self.executor = executor
  }

  var now: Duration { self.executor.now }

  var pendingCalls: Int { self.startedCalls - self.endedCalls }

  /// A run begins.
  func begin(_ duration: Duration) {
    self.start = self.executor.now
    self.intervalLength = max(duration / Self.intervalCount, .milliseconds(1))
    self.intervals = Array(repeating: Interval(), count: Self.intervalCount)
    self.latencies = Histogram()
    self.failures = [:]
    self.traffic = [:]
    (self.succeeded, self.requests, self.startedCalls, self.endedCalls) = (0, 0, 0, 0)
    self.violations = self.mistakes
    self.mistakes = []
    self.isRunning = true
  }

  // MARK: Events

  /// Something has happened that belongs to the trace.
  func note(_ what: String, at server: Int?) {
    self.trace.add(self.executor.now)
    self.trace.add(what)
    self.trace.add(UInt64(bitPattern: Int64(server ?? -1)))
  }

  func violation(_ text: String) {
    guard self.violations.count < Self.maximumViolations else { return }
    self.violations.append("\(self.executor.now): \(text)")
  }

  /// The program asks for something that makes no sense, perhaps before a run.
  func mistake(_ text: String) {
    if self.isRunning { self.violation(text) } else { self.mistakes.append(text) }
  }

  func requestArrived(at server: SimulatedServer, from clientZone: String?) {
    self.trace.add(self.executor.now)
    self.trace.add(UInt64(server.index))
    self.requests += 1
    if let clientZone { self.traffic[Way(from: clientZone, to: server.zone), default: 0] += 1 }
    self.withInterval { $0.requests += 1 }
  }

  func callBegan() { self.startedCalls += 1 }

  /// - Parameter error: Nil if it succeeded.
  func callEnded(_ number: Int, since start: Duration, _ error: (any Error)?) {
    self.endedCalls += 1
    let time = self.executor.now - start
    self.trace.add(self.executor.now)
    self.trace.add(UInt64(number))
    if let error {
      let name = (error as? ConnectError)?.code.name ?? (error is CancellationError ? "canceled" : "unknown")
      self.trace.add(name)
      self.failures[name, default: 0] += 1
      self.withInterval { $0.failed += 1 }
    } else {
      self.succeeded += 1
      self.latencies.add(time)
      self.withInterval { interval in
        interval.succeeded += 1
        interval.latencies.add(time)
      }
    }
  }

  private func withInterval(_ body: (inout Interval) -> Void) {
    guard !self.intervals.isEmpty else { return }
    let index = Int((self.executor.now - self.start) / self.intervalLength)
    body(&self.intervals[min(max(index, 0), self.intervals.count - 1)])
  }

  /// A request has arrived at a server. Notes a violation if its call was cancelled before, or if it is an attempt too many.
  ///
  /// - Returns: Whether there is anybody to answer.
  func mayArrive(_ exchange: SimulatedExchange) -> Bool {
    if let closeTime = exchange.closeTime {
      if closeTime < self.now { self.violation("a server saw a request after its cancellation") }
      return false
    }
    let previous = exchange.head.headers.first("grpc-previous-rpc-attempts").flatMap(Int.init)
    if let previous, previous >= self.maximumAttempts {
      self.violation("attempt \(previous + 1) of a call, of \(self.maximumAttempts) that are allowed")
    }
    return true
  }

  // MARK: Report

  func report(seed: UInt64, duration: Duration, _ servers: [SimulatedServer]) -> SimulationReport {
    self.isRunning = false
    func milliseconds(_ time: Duration?) -> Double? { time.map { ($0.seconds * 1e6).rounded() / 1e3 } }
    return SimulationReport(
      seed: seed,
      duration: duration.seconds,
      trace: String(self.trace.value, radix: 16),
      calls: self.endedCalls,
      succeeded: self.succeeded,
      failures: self.failures,
      latencies: .init(
        p50: milliseconds(self.latencies.percentile(0.5)),
        p90: milliseconds(self.latencies.percentile(0.9)),
        p99: milliseconds(self.latencies.percentile(0.99)),
        p999: milliseconds(self.latencies.percentile(0.999)),
        maximum: self.latencies.count > 0 ? milliseconds(self.latencies.largest) : nil
      ),
      requests: self.requests,
      intervals: self.intervals.enumerated().map { index, interval in
        .init(
          start: (self.intervalLength * index).seconds,
          succeeded: interval.succeeded,
          failed: interval.failed,
          requests: interval.requests,
          p50: milliseconds(interval.latencies.percentile(0.5)),
          p99: milliseconds(interval.latencies.percentile(0.99))
        )
      },
      servers: servers.map { server in
        .init(
          address: server.address,
          zone: server.zone,
          requests: server.figures.requests,
          succeeded: server.figures.succeeded,
          busiest: server.figures.busiest,
          longestQueue: server.figures.longestQueue
        )
      },
      traffic: self.traffic.sorted { ($0.key.from, $0.key.to) < ($1.key.from, $1.key.to) }.map { way, count in
        .init(from: way.from, to: way.to, requests: count)
      },
      costOfCrossing: self.costOfCrossing,
      violations: self.violations
    )
  }
}
