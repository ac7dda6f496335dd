internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Logging
internal import LoopbackServer
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

/// A client of servers whose addresses the test gives.
struct FleetClient: Sendable {
  let client: ProtocolClient
  let resolver: PushResolver
  let log: ConnectionLog

  /// Calls `body` with a client of `addresses`, and shuts that down.
  ///
  /// The client tries again to connect after 50 ms to 200 ms.
  ///
  /// - Parameter port: That of the client's origin, for resolvers that ask for one.
  static func run<Result>(
    _ addresses: [String],
    _ balancing: BalancingPolicy? = .roundRobin,
    port: Int = 80,
    networkProtocol: NetworkProtocol = .grpc,
    interceptors: [InterceptorFactory] = [],
    configure: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (FleetClient) async throws -> Result
  ) async throws -> Result {
    try await self.run(
      endpoints: self.endpoints(addresses),
      balancing,
      port: port,
      networkProtocol: networkProtocol,
      interceptors: interceptors,
      configure: configure,
      body
    )
  }

  /// The same with endpoints that have zones or weights.
  static func run<Result>(
    endpoints: [Endpoint],
    _ balancing: BalancingPolicy?,
    port: Int = 80,
    networkProtocol: NetworkProtocol = .grpc,
    interceptors: [InterceptorFactory] = [],
    configure: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (FleetClient) async throws -> Result
  ) async throws -> Result {
    let resolver = PushResolver()
    resolver.update(endpoints)
    var configuration = NIOHTTPClient.Configuration(version: .http2Only)
    configuration.channel.resolver = resolver
    configuration.channel.balancing = balancing
    configuration.channel.backoff = .init(initial: .milliseconds(50), maximum: .milliseconds(200))
    configure(&configuration)
    let log = ConnectionLog()
    let httpClient = NIOHTTPClient(configuration: configuration, logger: log.logger)
    var config = ProtocolClientConfig.forTests(host: "http://fleet.test:\(port)", interceptors: interceptors)
    config.networkProtocol = networkProtocol
    let client = ProtocolClient(httpClient: httpClient, config: config)
    do {
      let result = try await body(FleetClient(client: client, resolver: resolver, log: log))
      try await bounded("the client's shutdown") { await httpClient.shutdown(within: .seconds(10)) }
      return result
    } catch {
      await httpClient.shutdown(within: .zero)
      throw error
    }
  }

  static func endpoints(_ addresses: [String]) throws -> [Endpoint] {
    try addresses.map { address in
      guard let endpoint = Endpoint(address) else { throw LoopbackServerError("no address: \(address)") }
      return endpoint
    }
  }

  // MARK: Calls

  /// Makes so many calls, one after the other.
  func call(_ count: Int, options: CallOptions = CallOptions()) async -> FleetTally {
    var tally = FleetTally()
    for _ in 0..<count {
      tally.add(await self.client.unary(TestMethods.echo, EchoRequest(), options: options))
    }
    return tally
  }

  /// Makes a call that ends after `limit` at the latest: by its deadline, or as its task is cancelled.
  func call(within limit: Duration, cancels: Bool) async -> FleetTally {
    guard cancels else { return await self.call(1, options: CallOptions(timeout: limit)) }
    let call = Task { await self.call(1) }
    let watch = Task {
      try await Task.sleep(for: limit)
      call.cancel()
    }
    defer { watch.cancel() }
    return await call.value
  }

  /// Makes calls, one after the other, until `isEnough` says so of the last ones.
  func callUntil(
    _ what: String,
    inRowsOf count: Int = 20,
    _ isEnough: (FleetTally) -> Bool
  ) async throws -> FleetTally {
    var all = FleetTally()
    let end = ContinuousClock.now + patience
    while ContinuousClock.now < end {
      let row = await self.call(count)
      all.add(row)
      if isEnough(row) { return all }
    }
    throw LoopbackServerError("not within \(patience): \(what)")
  }

  /// Begins so many calls that servers hold, numbered from `first`.
  func hold(_ count: Int, from first: Int = 0) -> HeldCalls {
    let responses = HeldCalls()
    for number in first..<(first + count) {
      let request = EchoRequest.with {
        $0.payload.text = "hold"
        $0.payload.small = Int32(number)
      }
      self.client.unary(TestMethods.echo, request) { responses.record((number, $0)) }
    }
    return responses
  }
}

typealias HeldCalls = Recorder<(number: Int, response: ResponseMessage<EchoResponse>)>

extension Recorder where Value == (number: Int, response: ResponseMessage<EchoResponse>) {
  var tally: FleetTally {
    var tally = FleetTally()
    for value in self.values { tally.add(value.response) }
    return tally
  }
}

/// What became of calls.
struct FleetTally: Sendable {
  private(set) var succeeded: [String: Int] = [:]
  private(set) var failures: [ConnectError] = []

  var successCount: Int { self.succeeded.values.reduce(0, +) }
  var callCount: Int { self.successCount + self.failures.count }

  mutating func add(_ response: ResponseMessage<EchoResponse>) {
    if let error = response.error {
      self.failures.append(error)
    } else {
      self.succeeded[response.trailers.first("x-server") ?? "?", default: 0] += 1
    }
  }

  mutating func add(_ other: FleetTally) {
    self.succeeded.merge(other.succeeded, uniquingKeysWith: +)
    self.failures += other.failures
  }

  func expectNoFailures(file: StaticString = #filePath, line: UInt = #line) {
    let text = self.failures.first.map { "the first of \(self.failures.count): \(String(reflecting: $0))" }
    XCTAssertNil(text, file: file, line: line)
  }

  /// How many calls a server answered.
  subscript(_ server: String) -> Int { self.succeeded[server] ?? 0 }
}

/// Calls by several tasks, each one after the other, until they are stopped.
final class FleetLoad: Sendable {
  private let state: State
  private let tasks: [Task<Void, Never>]

  private final class State: Sendable {
    let isStopped = Atomic(false)
    let tallies: Mutex<[FleetTally]>

    init(_ count: Int) {
      self.tallies = Mutex(Array(repeating: FleetTally(), count: count))
    }
  }

  init(_ client: ProtocolClient, workers: Int, options: CallOptions = CallOptions()) {
    let state = State(workers)
    self.state = state
    self.tasks = (0..<workers).map { worker in
      Task {
        while !state.isStopped.load(ordering: .relaxed) {
          let response = await client.unary(TestMethods.echo, EchoRequest(), options: options)
          state.tallies.withLock { $0[worker].add(response) }
        }
      }
    }
  }

  /// One for each worker.
  var tallies: [FleetTally] { self.state.tallies.withLock { $0 } }

  var tally: FleetTally {
    var sum = FleetTally()
    for tally in self.tallies { sum.add(tally) }
    return sum
  }

  /// Waits until so many more calls have ended well at `server`, or anywhere.
  func wait(for count: Int, at server: String? = nil) async throws {
    func done() -> Int { server.map { self.tally[$0] } ?? self.tally.successCount }
    let goal = done() + count
    try await eventually("\(count) more calls at \(server ?? "the servers")") { done() >= goal }
  }

  func stop() async -> FleetTally {
    self.state.isStopped.store(true, ordering: .relaxed)
    for task in self.tasks { await task.value }
    return self.tally
  }
}
