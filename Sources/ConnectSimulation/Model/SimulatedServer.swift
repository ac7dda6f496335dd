public import Connect
internal import ConnectChannels
public import ConnectTesting

/// A server of a ``SimulatedCluster``: real handlers, behind a queue and a latency, that can go wrong.
///
/// All properties may be set before a run, and in the closures of ``SimulatedCluster/at(_:_:)``.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and before a run by the one who prepares it.
public final class SimulatedServer: @unchecked Sendable {
  /// How a method's calls fail on purpose.
  private struct Failure {
    var rate: Double
    var code: Code
  }

  /// The address and port that resolvers give, such as `10.0.0.7:443`.
  public let address: String
  /// The server's zone: resolvers report it to clients, and ``SimulatedNetwork/partition(zone:for:)`` cuts it off.
  public let zone: String
  let index: Int
  /// The server's place in a tree of policies, which resolvers give to clients (`Endpoint.path`). Empty by default: then ``zone``
  /// is the name of its part. A change holds from the next ``SimulatedService/resolve(to:)`` on.
  public var path: [String] = []
  /// How long the server works on a request before its handler answers. Nothing by default.
  public var latency = Latency.none
  /// How many requests the server works on at the same time; others wait in their order. Nil, the default, for any number.
  public var concurrency: Int?
  /// How many requests may wait; others fail with `resource_exhausted`. Nil, the default, for any number.
  public var queueLimit: Int?
  /// A request that takes longer, its wait in the queue included, is answered with `unavailable`, though its work was done:
  /// as by a gateway with a slow backend. Nil, the default, for no limit.
  public var timeLimit: Duration?
  /// Whether the server goes on working on cancelled requests, like servers that ignore cancellation. False by default.
  public var finishesAbandonedRequests = false
  /// How many requests the server takes on a connection before it sends GOAWAY, like nginx's `keepalive_requests`. Requests
  /// that come after the last one are refused, and clients send them again. At least 1; nil, the default, for any number.
  /// Holds for new connections.
  public var maximumRequestsPerConnection: Int?
  /// The age at which the server sends GOAWAY on a connection, like grpcio's `max_connection_age`. Nil, the default, for no
  /// limit. Holds for new connections.
  public var maximumConnectionAge: Duration?
  /// The health that the server reports to watchers (`grpc.health.v1.Health/Watch`), whichever service they ask for. Nil, the
  /// default, for a server without a health service.
  public var health: Health? {
    didSet {
      guard self.health != oldValue else { return }
      self.change("health \(self.health.map { "\($0)" } ?? "none")") { $0.healthService?.didChange() }
    }
  }

  /// What the server does with each request, in place of ``latency`` and of failures on purpose; nil for those.
  var behaviour: (any ServerBehaviour)?
  let memory: InMemoryServer
  let network: InMemoryNetwork
  let endpointAddress: EndpointAddress
  private let requests: RequestQueue
  private var healthService: HealthService?
  private weak var cluster: SimulatedCluster?
  /// Called for each request that arrives, even if it is refused.
  package var onArrival: ((ServerRequestHead) -> Void)?
  private(set) var isDown = false
  private(set) var isFrozen = false
  private var slowness: [String?: Double] = [:]
  private var failures: [String?: Failure] = [:]
  private var random: SeededRandom

  init(_ address: EndpointAddress, index: Int, zone: String, in cluster: SimulatedCluster) {
    self.random = SeededRandom(seed: cluster.random.next())
    self.endpointAddress = address
    self.address = address.description
    self.index = index
    self.zone = zone
    self.cluster = cluster
    let requests = RequestQueue()
    self.requests = requests
    self.memory = InMemoryServer(on: cluster.executor, options: ServerOptions(), window: 65_535) {
      await requests.receive($0, $1)
    }
    self.network = InMemoryNetwork(self.memory)
    requests.server = self
    self.healthService = HealthService(of: self)
  }

  // MARK: Handlers

  /// Answers the calls of a unary method, as in `InMemoryTransport`.
  public func onUnary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping UnaryHandler<Input, Output>
  ) {
    self.memory.serve(ServerMethod(method, StreamForm.unary(handler)))
  }

  /// Answers the calls of a method that answers a message with a stream.
  public func onServerStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping ServerStreamHandler<Input, Output>
  ) {
    self.memory.serve(ServerMethod(method, StreamForm.serverStream(handler)))
  }

  /// Answers the calls of a method that answers a stream with a message.
  public func onClientStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping ClientStreamHandler<Input, Output>
  ) {
    self.memory.serve(ServerMethod(method, StreamForm.clientStream(handler)))
  }

  /// Answers the calls of a method with streams in both directions.
  public func onBidirectionalStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ handler: @escaping BidirectionalStreamHandler<Input, Output>
  ) {
    self.memory.serve(ServerMethod(method, handler))
  }

  /// Answers the calls of a cassette's methods from the cassette, each recorded call once, behind the server's queue and
  /// latency. Other calls of these methods fail, as in `InMemoryTransport.play(_:timing:)`.
  public func play(_ cassette: Cassette) {
    for (path, handler) in CassettePlayer(cassette, timing: .atOnce).handlers {
      self.memory.serve(path, with: handler)
    }
  }

  // MARK: Faults

  /// The process dies: connections are reset, and new ones refused.
  public func crash() {
    self.change("crash") { server in
      server.isDown = true
      server.network.setRefusal(true, at: nil)
      server.network.forEachConnection(to: nil) { $0.disconnect() }
      server.requests.die()
    }
  }

  /// The process runs again, after ``crash()``.
  public func start() {
    self.change("start") { server in
      server.isDown = false
      server.network.setRefusal(false, at: nil)
    }
  }

  /// The process stops, as with SIGSTOP: it takes connections and requests, and answers nothing, not even pings.
  public func freeze() {
    self.change("freeze") { $0.isFrozen = true }
  }

  /// The process goes on, after ``freeze()``.
  public func thaw() {
    self.change("thaw") { server in
      server.isFrozen = false
      server.requests.thaw()
    }
  }

  /// Refuses new connections, or accepts them again. Open connections stay.
  public func refuseConnections(_ refuses: Bool = true) {
    self.change("refuse \(refuses)") { $0.network.setRefusal(refuses || $0.isDown, at: nil) }
  }

  /// The server goes away in order (GOAWAY): open streams finish, and clients open new connections.
  public func goAway() {
    self.change("go away") { server in server.network.forEachConnection(to: nil) { $0.goAway() } }
  }

  /// The server goes away in order, is gone after `drain`, and back after `downtime` more.
  public func restart(drain: Duration = .zero, downtime: Duration = .seconds(1)) {
    self.change("restart") { server in
      server.network.setRefusal(true, at: nil)
      server.network.forEachConnection(to: nil) { $0.goAway() }
      _ = server.memory.executor.schedule(after: drain) {
        server.crash()
        _ = server.memory.executor.schedule(after: downtime) { server.start() }
      }
    }
  }

  /// Multiplies the server's latency by a factor.
  ///
  /// - Parameters:
  ///   - factor: 1 for as long as usual.
  ///   - path: The path of a method; nil for all methods without a separate factor.
  public func slow(by factor: Double, path: String? = nil) {
    self.change("slow \(factor) \(path ?? "")") { $0.slowness[path] = factor }
  }

  /// Fails a part of the requests with `code`, at the time when the server would answer them.
  ///
  /// - Parameters:
  ///   - rate: From 0 to 1.
  ///   - code: The code of the errors that these requests are answered with.
  ///   - path: The path of a method; nil for all methods without a separate rate.
  public func fail(_ rate: Double, with code: Code = .unavailable, path: String? = nil) {
    self.change("fail \(rate) \(code) \(path ?? "")") { $0.failures[path] = Failure(rate: rate, code: code) }
  }

  private func change(_ what: String, _ work: @escaping @Sendable (SimulatedServer) -> Void) {
    self.memory.executor.run {
      self.cluster?.recorder.note(what, at: self.index)
      work(self)
    }
  }

  // MARK: For the queue of requests

  /// How long the server works on a request, and the code that it fails with if that is decided already.
  func sampleWork(for path: String) -> (time: Duration, code: Code?) {
    let factor = max(self.slowness[path] ?? self.slowness[nil] ?? 1, 0)
    guard let behaviour = self.behaviour else {
      return (self.latency.sample(&self.random).scaled(by: factor), nil)
    }
    let (time, code) = behaviour.work(on: path, &self.random)
    return (time.scaled(by: factor), code)
  }

  /// The code that the server fails a request with; nil if it does not fail the request.
  func failure(for path: String) -> Code? {
    guard let failure = self.failures[path] ?? self.failures[nil], failure.rate > 0 else { return nil }
    return self.random.fraction() < failure.rate ? failure.code : nil
  }

  var recorder: RunRecorder? { self.cluster?.recorder }

  var figures: RequestQueue.Figures { self.requests.figures }
  var load: Int { self.requests.load }

  /// The paths of open streams. Leaves out one watch of the server's health for each connection, which may stay.
  var leftovers: [String] {
    self.network.connections.flatMap { connection in
      var paths = connection.openPaths
      let watch = paths.firstIndex(of: HealthService.watch.info.path)
      if let watch, self.health != nil, !connection.isDraining { paths.remove(at: watch) }
      return paths
    }
  }

  /// - Returns: False if the caller's task was cancelled before.
  func waitUntilThawed() async -> Bool { await self.requests.waitUntilThawed(self) }
}

/// What a server does with requests, where times and failures belong together.
protocol ServerBehaviour: Sendable {
  /// How long the server works on a request, and the code that it then fails with; nil for success.
  func work(on path: String, _ random: inout SeededRandom) -> (time: Duration, code: Code?)
}
