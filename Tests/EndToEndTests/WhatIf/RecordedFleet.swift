internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
internal import Foundation
internal import LoopbackServer
internal import Synchronization

/// Ten grpcio servers in separate processes, and calls to them at a steady rate, of which a log is kept.
struct RecordedFleet: Sendable {
  /// A call as an access log has it.
  struct Entry: Sendable {
    var start: Duration
    var duration: Duration
    var code: String
    var server: String
  }

  /// What became of calls.
  struct Record: Sendable {
    var entries: [Entry] = []
    var attempts = 0

    var attemptsPerCall: Double { Double(self.attempts) / Double(max(self.entries.count, 1)) }

    var successRate: Double {
      Double(self.entries.count { $0.code == "ok" }) / Double(max(self.entries.count, 1))
    }

    /// The duration that this share of the calls that succeeded does not exceed, in milliseconds.
    func percentile(_ share: Double) -> Double {
      let sorted = self.entries.filter { $0.code == "ok" }.map { $0.duration / .milliseconds(1) }.sorted()
      guard !sorted.isEmpty else { return 0 }
      return sorted[min(Int(Double(sorted.count) * share), sorted.count - 1)]
    }

    /// An access log, a JSON object a line.
    var log: String {
      let begin = 1_764_000_000.0
      return self.entries.map { entry in
        """
        {"time": \(begin + entry.start / .seconds(1)), "method": "/connect.test.v1.TestService/Echo", \
        "duration_ms": \(entry.duration / .milliseconds(1)), "code": "\(entry.code)", "server": "\(entry.server)"}
        """
      }.joined(separator: "\n") + "\n"
    }
  }

  let fleets: [Fleet]
  let addresses: [String]

  /// Calls `body` with ten servers, of which the median and spread of latencies are given, and ends them.
  static func run<Result>(
    median: Duration,
    spread: Double,
    _ body: (RecordedFleet) async throws -> Result
  ) async throws -> Result {
    try await Fleet.withProcesses(10) { fleets in
      var addresses: [String] = []
      for (index, fleet) in fleets.enumerated() {
        let address = try await fleet.start("127.0.0.\(2 + index)")
        try await fleet.delay(address, median: median, spread: spread)
        addresses.append(address)
      }
      return try await body(RecordedFleet(fleets: fleets, addresses: addresses))
    }
  }

  /// Makes calls at a steady rate, whether earlier ones have ended or not.
  ///
  /// - Parameters:
  ///   - config: A service config.
  ///   - trouble: Called after the calls of a second.
  func record(
    calls: Int,
    perSecond rate: Double,
    config: String,
    trouble: () async throws -> Void = {}
  ) async throws -> Record {
    let counter = AttemptCounter()
    return try await FleetClient.run(
      self.addresses,
      .roundRobin,
      interceptors: [
        { _ in
          RetryInterceptor(policy: RetryPolicy(maximumAttempts: 1), budget: RetryBudget(maximumTokens: 1_000))
        },
        { _ in counter.interceptor },
      ]
    ) { fleetClient in
      let endpoints = try FleetClient.endpoints(self.addresses)
      fleetClient.resolver.update(endpoints, serviceConfig: config)
      _ = try await fleetClient.callUntil("all answer") { $0.succeeded.count == self.addresses.count }
      counter.reset()
      let client = fleetClient.client
      let begin = ContinuousClock.now
      let entries = try await withThrowingTaskGroup(of: Entry.self) { group in
        for number in 0..<calls {
          let due = begin + .seconds(Double(number) / rate)
          try await Task.sleep(until: due)
          if number == Int(rate) { try await trouble() }
          group.addTask {
            let start = ContinuousClock.now
            let response = await client.unary(TestMethods.echo, EchoRequest())
            return Entry(
              start: start - begin,
              duration: ContinuousClock.now - start,
              code: response.code.name,
              server: response.trailers.first("x-server") ?? ""
            )
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      return Record(entries: entries.sorted { $0.start < $1.start }, attempts: counter.count)
    }
  }
}

/// Counts the attempts that go to the network.
private final class AttemptCounter: Sendable {
  private let attempts = Atomic(0)

  var count: Int { self.attempts.load(ordering: .relaxed) }

  func reset() { self.attempts.store(0, ordering: .relaxed) }

  var interceptor: any Interceptor { Counting(counter: self) }

  private struct Counting: Interceptor {
    let counter: AttemptCounter

    func attemptFunction() -> AttemptFunction? {
      { event in
        if case .started = event { self.counter.attempts.add(1, ordering: .relaxed) }
      }
    }
  }
}
