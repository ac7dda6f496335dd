internal import Connect
internal import ConnectChannels
internal import ConnectTesting
internal import ConnectXDS
internal import Glibc
internal import Logging
internal import NIOCore
internal import SwiftProtobuf

/// What it takes to apply many endpoints that a control plane sends, in processor time: from the bytes of its response to a channel
/// whose balancer has them.
package struct MeshSize: Sendable, CustomStringConvertible {
  /// The parts of one update, in microseconds.
  package struct Update: Sendable, CustomStringConvertible {
    /// From the bytes of the response to resources that were checked.
    fileprivate(set) var decoded = 0.0
    /// From these to routes for channels.
    fileprivate(set) var routed = 0.0
    /// From these to the channel's new picker.
    fileprivate(set) var applied = 0.0
    /// To begin the attempts to connect, which are not in the sum.
    fileprivate(set) var attempted = 0.0

    package var sum: Double { self.decoded + self.routed + self.applied }

    package var description: String {
      func text(_ time: Double) -> String { "\((time / 10).rounded() / 100) ms" }
      return "\(text(self.sum)) (decoded in \(text(self.decoded)), routes in \(text(self.routed)), "
        + "applied in \(text(self.applied)); besides, attempts to connect begin in \(text(self.attempted)))"
    }
  }

  package let endpoints: Int
  /// All endpoints are new.
  package let first: Update
  /// One of a hundred endpoints is another one.
  package let change: Update

  package var description: String {
    "\(self.endpoints) endpoints: \(self.first); 1 % others: \(self.change)"
  }

  /// Measures several times: of each part, the median counts.
  package static func measure(endpoints: Int, localities: Int = 10, times: Int = 9) -> MeshSize? {
    var runs: [(first: Update, change: Update)] = []
    for _ in 0..<times {
      guard let idle = Self.once(endpoints, localities, connects: false),
        let connecting = Self.once(endpoints, localities, connects: true)
      else { return nil }
      var run = idle
      run.first.attempted = max(connecting.first.applied - idle.first.applied, 0)
      run.change.attempted = max(connecting.change.applied - idle.change.applied, 0)
      runs.append(run)
    }
    return MeshSize(
      endpoints: endpoints,
      first: Self.median(runs.map(\.first)),
      change: Self.median(runs.map(\.change))
    )
  }

  private static func median(_ updates: [Update]) -> Update {
    func median(_ part: (Update) -> Double) -> Double { updates.map(part).sorted()[updates.count / 2] }
    return Update(
      decoded: median(\.decoded),
      routed: median(\.routed),
      applied: median(\.applied),
      attempted: median(\.attempted)
    )
  }

  private static func once(_ endpoints: Int, _ localities: Int, connects: Bool) -> (
    first: Update, change: Update
  )? {
    let run = MeshSizeRun(connects: connects)
    guard run.start() else { return nil }
    run.deliver(.listener, MeshMessages.listener(inline: MeshState(main: "v0", other: "v0")))
    run.deliver(.cluster, MeshMessages.cluster("v0", maximumCalls: 1_000_000))
    let first = run.deliver(.endpoints, MeshMessages.endpoints("v0", endpoints, localities, changed: 0))
    // The same endpoints, which are not decoded again, become new routes.
    let rebuilt = run.deliver(.cluster, MeshMessages.cluster("v0", maximumCalls: 2_000_000))
    let others = endpoints / 100
    let change = run.deliver(.endpoints, MeshMessages.endpoints("v0", endpoints, localities, changed: others))
    guard run.endpointCount == endpoints / localities * localities else { return nil }
    func update(_ times: (found: Double, applied: Double)) -> Update {
      Update(decoded: max(times.found - rebuilt.found, 0), routed: rebuilt.found, applied: times.applied)
    }
    return (update(first), update(change))
  }
}

/// A client with a control plane in memory, and a channel whose connections never come.
///
/// `@unchecked Sendable`: used by one thread.
private final class MeshSizeRun: @unchecked Sendable {
  private final class NoConnections: ConnectionOpener {
    func open(_ connection: PooledConnection) {}
  }

  private let executor = VirtualExecutor()
  private let plane: MemoryControlPlane
  private let client: XDSClient
  private let channels = PushResolver()
  private let origin = Origin(scheme: .http, host: MeshMessages.target, port: 80)
  private let channel: OriginChannel
  private var watch: (any ResolverWatch)?
  private var found: ResolverUpdate?
  private var count = 0

  /// - Parameter connects: Whether the channel begins to connect to all endpoints.
  init(connects: Bool) {
    let plane = MemoryControlPlane(self.executor)
    self.plane = plane
    self.client = XDSClient(
      bootstrap: XDSBootstrap(servers: [.init(uri: "control.internal:443", credentials: .insecure)]),
      on: self.executor,
      seed: 1,
      names: StaticResolver([])
    ) { _ in plane }
    self.channel = OriginChannel(
      ChannelEnvironment(
        origin: self.origin,
        executor: self.executor,
        opener: NoConnections(),
        resolver: self.channels,
        logger: Logger(label: "size", factory: { _ in SwiftLogNoOpLogHandler() }),
        seed: 1
      )
    )
    if !connects { self.channel.closeWhenIdle() }
  }

  func start() -> Bool {
    guard let resolver = try? self.client.resolver(for: "xds:///\(MeshMessages.target)") else { return false }
    self.watch = self.executor.sync {
      resolver.watch(self.origin, on: self.executor) { answer in self.found = try? answer.get() }
    }
    self.channel.connect()
    self.executor.runUntilIdle()
    return true
  }

  /// How many endpoints the channel has.
  var endpointCount: Int {
    self.executor.sync {
      ChannelSnapshot(self.channel).clusters.first?.snapshot.endpoints.count ?? 0
    }
  }

  /// Sends a resource.
  ///
  /// - Returns: The microseconds until there are routes for it, if there are, and those until the channel follows them.
  @discardableResult
  func deliver(_ type: MeshType, _ resource: Google_Protobuf_Any) -> (found: Double, applied: Double) {
    self.count += 1
    let response = Envoy_Service_Discovery_V3_DiscoveryResponse.with {
      $0.versionInfo = "\(self.count)"
      $0.nonce = "n\(self.count)"
      $0.typeURL = type.url
      $0.resources = [resource]
    }
    guard let bytes = try? response.serializedBytes() as [UInt8] else { return (0, 0) }
    var frame = ByteBuffer()
    frame.writeInteger(0 as UInt8)
    frame.writeInteger(UInt32(bytes.count))
    frame.writeBytes(bytes)
    self.found = nil
    var start = Self.processorTime
    self.executor.sync { self.plane.send(frame) }
    self.executor.runUntilIdle()
    let found = Self.processorTime - start
    guard let update = self.found else { return (found, 0) }
    start = Self.processorTime
    self.channels.update(update)
    self.executor.runUntilIdle()
    return (found, Self.processorTime - start)
  }

  /// In microseconds.
  private static var processorTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
  }
}

/// Answers one stream with bytes that are ready.
///
/// `@unchecked Sendable`: used on the executor.
private final class MemoryControlPlane: HTTPClientInterface, HTTPEndpoint, @unchecked Sendable {
  private final class Stream: HTTPStream {
    func write(_ bytes: ByteBuffer) {}
    func finish(trailers: Headers) {}
    func consume(_ count: Int) {}
    func cancel() {}
    func expire() {}
  }

  let executor: any CallExecutor
  private var handler: (any HTTPStreamHandler)?

  init(_ executor: any CallExecutor) {
    self.executor = executor
  }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint { self }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.handler = handler
    return Stream()
  }

  private var hasAnswered = false

  func send(_ bytes: ByteBuffer) {
    if !self.hasAnswered {
      self.hasAnswered = true
      self.handler?.streamDidReceive(
        HTTPResponseHead(status: 200, headers: ["content-type": ["application/grpc"]])
      )
    }
    self.handler?.streamDidReceive(bytes)
    self.handler?.streamDidBecomeWritable()
  }
}

extension MeshMessages {
  fileprivate static func cluster(_ name: String, maximumCalls: UInt32) -> Google_Protobuf_Any {
    self.any(
      Envoy_Config_Cluster_V3_Cluster.with {
        $0.name = name
        $0.type = .eds
        $0.edsClusterConfig.edsConfig.ads = .init()
        $0.circuitBreakers.thresholds = [.with { $0.maxRequests = .init(maximumCalls) }]
      }
    )
  }

  /// Endpoints in equal parts. The first ones of each locality are others than in an update without changes.
  fileprivate static func endpoints(
    _ name: String,
    _ count: Int,
    _ localities: Int,
    changed: Int
  ) -> Google_Protobuf_Any {
    self.any(
      Envoy_Config_Endpoint_V3_ClusterLoadAssignment.with { assignment in
        assignment.clusterName = name
        assignment.endpoints = (0..<localities).map { zone in
          .with { locality in
            locality.locality.zone = "zone \(zone)"
            locality.loadBalancingWeight = .init(1)
            locality.lbEndpoints = (0..<count / localities).map { number in
              let second = number < changed / localities ? 200 : 100
              return .with {
                $0.endpoint.address.socketAddress.address =
                  "10.\(second + zone).\(number / 256 % 256).\(number % 256)"
                $0.endpoint.address.socketAddress.portValue = 443
              }
            }
          }
        }
      }
    )
  }
}
