package import Connect
public import ConnectChannels
public import ConnectTesting
internal import Foundation

/// Services with many servers, a network and clients, in one process and in virtual time: minutes pass in seconds.
///
/// Calls, interceptors, retries, hedging, protocols, balancing and connection pools are the real ones. Sockets, names and
/// time are simulated. So is the part of HTTP/2 that calls see: streams, resets and GOAWAY, but not frames.
///
/// ```swift
/// let cluster = SimulatedCluster(seed: 7)
/// let users = cluster.service("users.internal:443", servers: 50) { server in
///   server.onUnary(getUser) { request, _ in User(id: request.id) }
///   server.latency = .logNormal(median: .milliseconds(3), p99: .milliseconds(40))
///   server.concurrency = 64
/// }
/// let client = ProtocolClient(httpClient: cluster.httpClient(channel), config: config)
/// cluster.at(.seconds(30)) { users[3].freeze() }
/// let report = await cluster.run(for: .seconds(300), load: .open(perSecond: 2_000)) { _ in
///   _ = try await client.unary(getUser, UserRequest(id: 7)).get()
/// }
/// print(report)
/// ```
///
/// The same program with the same seed has the same events in each run, and ``SimulationReport/trace`` is their hash. Other
/// sources of time or chance break this: `Task.sleep`, clocks other than ``clock``, `Int.random`, and the order of sets and
/// dictionaries.
///
/// Each run checks that calls end once, that servers see no request after its cancellation, that attempts keep to
/// ``maximumAttempts``, and that nothing is left afterwards. Failed checks are in ``SimulationReport/violations``.
///
/// `@unchecked Sendable`: what changes is touched on the executor, and before a run by the one who prepares it.
public final class SimulatedCluster: @unchecked Sendable {
  /// Determines all that is random.
  public let seed: UInt64
  /// The network between clients and servers: its latencies, and what goes wrong with it.
  public let network: SimulatedNetwork
  let executor: SimulationExecutor
  let recorder: RunRecorder
  var random: SeededRandom
  private(set) var services: [SimulatedService] = []
  private var servers: [EndpointAddress: SimulatedServer] = [:]
  /// The servers of all services, in the order in which they were made.
  private(set) var allServers: [SimulatedServer] = []
  /// The last crash of each zone.
  var zoneOutages: [String: ZoneOutage] = [:]
  private var calls: [Int: Task<Void, Never>] = [:]

  /// A cluster without servers.
  ///
  /// - Parameter seed: Determines all that is random. The same program with the same seed does the same in each run.
  public init(seed: UInt64) {
    let executor = SimulationExecutor()
    let recorder = RunRecorder(on: executor)
    var random = SeededRandom(seed: seed)
    self.seed = seed
    self.executor = executor
    self.recorder = recorder
    self.network = SimulatedNetwork(on: executor, recorder, random: SeededRandom(seed: random.next()))
    self.random = random
    recorder.cluster = self
  }

  deinit { self.end() }

  /// Ends remaining connections, timers and waiting tasks, which would keep themselves alive. For simulations with resolvers that
  /// hold a transport of the cluster, which would keep the cluster alive, too. Nothing runs here afterwards.
  package func end() {
    let servers = self.allServers
    self.executor.end { for server in servers { server.network.endConnections() } }
  }

  /// The simulation's time, for interceptors and caches that take a clock. Tasks of the simulation, such as handlers and
  /// calls, may sleep on it.
  ///
  /// ```swift
  /// let breaker = CircuitBreaker(clock: cluster.clock)
  /// ```
  public var clock: VirtualClock { VirtualClock(self.executor) }

  /// Where all of the simulation runs, for a client of control planes.
  package var callExecutor: any CallExecutor { self.executor }

  /// How many requests of one call servers may see, by retries and hedging: 10 by default. More are a violation.
  public var maximumAttempts: Int {
    get { self.recorder.maximumAttempts }
    set { self.recorder.maximumAttempts = newValue }
  }

  /// The price of one request to a server in another zone than the client's, in any unit; 0 by default.
  /// ``SimulationReport/crossingCost`` is the sum.
  ///
  /// Providers charge bytes that cross zones: for 10 KiB a call and 0.02 a gigabyte, it is about 0.0000002.
  public var costOfCrossing: Double {
    get { self.recorder.costOfCrossing }
    set { self.recorder.costOfCrossing = newValue }
  }

  /// A new random source, determined by the seed.
  public func makeRandom() -> SeededRandom { SeededRandom(seed: self.random.next()) }

  /// Numbers from 0 to 1 that the seed determines, for interceptors with jitter: `RetryPolicy(random: cluster.chance)`.
  public var chance: @Sendable () -> Double {
    let source = SharedRandom(self.makeRandom())
    return { source.next() }
  }

  // MARK: Services and clients

  /// Adds a service.
  ///
  /// - Parameters:
  ///   - name: With its port, such as `users.internal:443`. Clients call it by `https://` or `http://` and this name.
  ///   - count: How many servers there are, at least 1.
  ///   - zones: Servers are spread over them in turn.
  ///   - setup: Called for each server, before anything runs.
  @discardableResult
  public func service(
    _ name: String,
    servers count: Int,
    zones: [String] = ["a"],
    _ setup: (SimulatedServer) -> Void
  ) -> SimulatedService {
    let servers = (0..<max(count, 1)).compactMap { index -> SimulatedServer? in
      let number = self.allServers.count + index
      let host = "10.\(number / 65_536 % 256).\(number / 256 % 256).\(number % 256)"
      guard let address = EndpointAddress("\(host):443") else { return nil }
      let zone = zones.isEmpty ? "a" : zones[index % zones.count]
      return SimulatedServer(address, index: number, zone: zone, in: self)
    }
    for server in servers {
      setup(server)
      self.servers[server.endpointAddress] = server
    }
    self.allServers += servers
    let service = SimulatedService(name, servers, in: self)
    self.services.append(service)
    return service
  }

  func server(at address: EndpointAddress) -> SimulatedServer? { self.servers[address] }

  /// A transport for clients.
  ///
  /// - Parameters:
  ///   - configuration: Its resolver, if it has one, replaces the cluster's names.
  ///   - zone: The client's zone. Channels know it (`ChannelConfiguration.zone`) unless the configuration has another one.
  public func httpClient(_ configuration: ChannelConfiguration = .defaults, zone: String = "a")
    -> SimulatedHTTPClient
  {
    SimulatedHTTPClient(self, configuration, zone: zone, seed: self.random.next())
  }

  // MARK: Events

  /// Runs `work` at a time since the cluster was made.
  public func at(_ time: Duration, _ work: @escaping @Sendable () -> Void) {
    self.executor.run { _ = self.executor.schedule(after: time.clamped - self.executor.now, work) }
  }

  /// Nothing runs for this time, neither clients nor servers, as when the machine is suspended: timers that are due
  /// meanwhile fire late.
  public func pause(for duration: Duration) {
    self.executor.run {
      self.recorder.note("pause", at: nil)
      self.executor.passUnnoticed(duration)
    }
  }

  // MARK: Runs

  /// Makes calls for this much virtual time, then waits until all have ended.
  ///
  /// - Parameters:
  ///   - duration: For how long new calls are started, in virtual time. A negative duration counts as zero.
  ///   - load: When calls begin: at random times, or when a caller's last call has ended.
  ///   - call: Makes one call; it gets the call's number. If it throws, the call has failed.
  public func run(
    for duration: Duration,
    load: SimulatedLoad,
    _ call: @escaping @Sendable (_ number: Int) async throws -> Void
  ) async -> SimulationReport {
    await withCheckedContinuation { continuation in
      let thread = Thread {
        continuation.resume(returning: self.runHere(max(duration.clamped, .zero), load, call))
      }
      thread.stackSize = 8 << 20
      thread.start()
    }
  }

  private func runHere(
    _ duration: Duration,
    _ load: SimulatedLoad,
    _ call: @escaping @Sendable (Int) async throws -> Void
  ) -> SimulationReport {
    let generator = LoadGenerator(load, on: self, until: self.executor.now + duration, call)
    self.recorder.begin(duration)
    generator.start()
    do {
      try self.executor.run(until: self.executor.now + duration)
      // Calls in flight may end; calls that wait for ever are cancelled.
      try self.runUntilEmpty(within: .seconds(600))
      if self.recorder.pendingCalls > 0 {
        self.recorder.violation(
          "\(self.recorder.pendingCalls) calls did not end by themselves within 10 minutes"
        )
        for task in self.calls.sorted(by: { $0.key < $1.key }) { task.value.cancel() }
        try self.runUntilEmpty(within: .seconds(600))
      }
      // Servers finish their work, and resets arrive.
      try self.executor.run(until: self.executor.now + .seconds(60))
      self.executor.execute { self.checkThatNothingIsLeft() }
      try self.executor.run(until: self.executor.now)
    } catch {
      self.recorder.violation("something goes on without end, and time does not pass")
    }
    return self.recorder.report(seed: self.seed, duration: duration, self.allServers)
  }

  private func runUntilEmpty(within limit: Duration) throws(SimulationExecutor.Livelock) {
    try self.executor.run(until: self.executor.now + limit) { self.recorder.pendingCalls == 0 }
  }

  private func checkThatNothingIsLeft() {
    let recorder = self.recorder
    if recorder.pendingCalls > 0 { recorder.violation("\(recorder.pendingCalls) calls never ended") }
    for server in self.allServers {
      for path in server.leftovers { recorder.violation("\(server.address) has a stream of \(path) left") }
    }
  }

  // MARK: For the load

  /// Begins a call. To be called on the executor.
  func begin(
    _ number: Int,
    _ call: @escaping @Sendable (Int) async throws -> Void,
    then done: @escaping @Sendable () -> Void
  ) {
    self.recorder.callBegan()
    let start = self.executor.now
    self.calls[number] = Task(executorPreference: self.executor) {
      var failure: (any Error)?
      do { try await call(number) } catch { failure = error }
      self.calls[number] = nil
      self.recorder.callEnded(number, since: start, failure)
      done()
    }
  }
}

/// `@unchecked Sendable`: touched on the simulation's executor alone, where interceptors run.
private final class SharedRandom: @unchecked Sendable {
  private var random: SeededRandom

  init(_ random: SeededRandom) {
    self.random = random
  }

  func next() -> Double { self.random.fraction() }
}
