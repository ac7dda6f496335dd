internal import Connect
internal import ConnectChannels
internal import ConnectSimulation
internal import ConnectTesting
internal import ConnectXDS
internal import SwiftProtobuf

/// Which servers the calls of a run went to.
///
/// `@unchecked Sendable`: used on the simulation's executor, and after the run.
private final class MeshLedger: @unchecked Sendable {
  private(set) var problems: [String] = []
  private(set) var failures: [String] = []
  /// Since when only these servers may get calls that begin.
  var allowed: (servers: Set<Int>, since: Duration)?
  var starts: [String: Duration] = [:]
  let poisoned: Int

  init(poisoned: Int) { self.poisoned = poisoned }

  func requestCame(_ text: String, to server: Int) {
    if server == self.poisoned { self.add("call \(text) went to a server of endpoints that were refused") }
    guard let allowed, let start = self.starts[text], start > allowed.since else { return }
    if !allowed.servers.contains(server) {
      self.add(
        "call \(text) went to server \(server), though the routes say otherwise since \(allowed.since)"
      )
    }
  }

  func callFailed(_ text: String, at time: Duration, _ error: any Error) {
    self.add("call \(text) failed at \(time): \(error)")
  }

  private func add(_ problem: String) {
    if self.problems.count < 10 { self.problems.append(problem) }
  }
}

extension MeshScenario {
  /// Runs the scenario: no call may fail, and none may go where no accepted resource has sent it.
  package func run() async -> Finding {
    let cluster = SimulatedCluster(seed: self.seed)
    // The client of control planes holds a transport of the cluster.
    defer { cluster.end() }
    cluster.network.roundTrip = .constant(self.roundTrip)
    let ledger = MeshLedger(poisoned: self.servers - 1)
    let service = self.makeService(in: cluster, ledger)
    let plane = MeshControlPlane(cluster.clock, cluster.makeRandom())
    plane.delay = self.delay
    let controls = (0..<self.controlPlanes).map { index in
      cluster.service("control\(index).internal:443", servers: 1, zones: ["control\(index)"]) { server in
        plane.serve(on: server)
      }
    }
    service[self.deadServer].crash()
    self.schedule(in: cluster, service, controls, plane)
    let settled = self.settled
    let last = self.steps.last?.state.servers ?? []
    cluster.at(settled) { ledger.allowed = (last, settled) }

    let bootstrap = XDSBootstrap(
      servers: (0..<self.controlPlanes).map { index in
        .init(uri: "control\(index).internal:443", credentials: .insecure)
      },
      node: .init(id: "explorer")
    )
    let controlClient = cluster.httpClient()
    let xds = XDSClient(bootstrap: bootstrap, on: cluster.callExecutor, seed: self.seed) { _ in controlClient
    }
    // When all calls are over: its stream would be left.
    cluster.at(self.duration + .seconds(30)) { xds.shutDown() }
    var problems: [String] = []
    let report: SimulationReport
    do {
      let resolver = try xds.resolver(for: "xds:///\(MeshMessages.target)")
      let transport = cluster.httpClient(ChannelConfiguration(resolver: resolver))
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "http://\(MeshMessages.target)",
          networkProtocol: .grpc,
          waitForReady: self.waitForReady
        )
      )
      report = await cluster.run(for: self.duration, load: .open(perSecond: self.callsPerSecond)) { number in
        try await self.call(number, client, cluster.clock, ledger)
      }
    } catch {
      return Finding(
        report: await cluster.run(for: .zero, load: .open(perSecond: 1)) { _ in },
        problems: ["\(error)"],
        checks: []
      )
    }
    problems += report.violations + ledger.problems + plane.problems
    let broken = self.steps.flatMap(\.changes).filter {
      if case .brokenEndpoints = $0 { true } else { false }
    }
    var checks: [String] = []
    if !broken.isEmpty, plane.refusals.contains(where: { $0.contains("priority") }) {
      checks.append("endpoints that cannot be used are refused")
    }
    if plane.acknowledgements == 0 { problems.append("no response was acknowledged") }
    return Finding(report: report, problems: problems, checks: checks)
  }

  private func makeService(in cluster: SimulatedCluster, _ ledger: MeshLedger) -> SimulatedService {
    var count = 0
    return cluster.service("servers.internal:443", servers: self.servers + 1, zones: ["a", "b", "c"]) {
      server in
      let index = count
      count += 1
      server.onUnary(MethodSpec<Text, Text>.post) { request, _ in
        ledger.requestCame(request.value, to: index)
        return request
      }
    }
  }

  private func call(
    _ number: Int,
    _ client: ProtocolClient,
    _ clock: VirtualClock,
    _ ledger: MeshLedger
  ) async throws {
    let text = "\(number)"
    ledger.starts[text] = clock.now.offset
    var options = CallOptions()
    if number.isMultiple(of: 3) { options.headers = [MeshMessages.header: ["yes"]] }
    do {
      _ = try await client.unary(.post, Text(text), options: options).get()
    } catch {
      ledger.callFailed(text, at: clock.now.offset, error)
      throw error
    }
  }

  // MARK: Events

  private func schedule(
    in cluster: SimulatedCluster,
    _ service: SimulatedService,
    _ controls: [SimulatedService],
    _ plane: MeshControlPlane
  ) {
    for step in self.steps {
      cluster.at(step.time) {
        for change in step.changes { self.apply(change, step.state, service, plane) }
      }
    }
    for trouble in self.troubles {
      let control = controls[trouble.index]
      cluster.at(trouble.time) {
        switch trouble.fault {
        case .crash: control[0].crash()
        case .freeze: control[0].freeze()
        case .goAway: control[0].goAway()
        case .partition: cluster.network.partition(zone: control[0].zone, for: trouble.length)
        }
      }
      cluster.at(trouble.time + trouble.length) {
        switch trouble.fault {
        case .crash: control[0].start()
        case .freeze: control[0].thaw()
        case .goAway, .partition: break
        }
      }
    }
  }

  private func apply(
    _ change: Change,
    _ state: MeshState,
    _ service: SimulatedService,
    _ plane: MeshControlPlane
  ) {
    switch change {
    case .clusters:
      let all = state.groups.keys.sorted() + state.aggregates.keys.sorted()
      for (name, group) in state.groups.sorted(by: { $0.key < $1.key }) {
        plane.set(.cluster, name, MeshMessages.cluster(name, group))
      }
      for (name, parts) in state.aggregates.sorted(by: { $0.key < $1.key }) {
        plane.set(.cluster, name, MeshMessages.aggregate(name, parts))
      }
      plane.keep(.cluster, all)
    case .endpoints:
      var names: [String] = []
      for (name, group) in state.groups.sorted(by: { $0.key < $1.key }) {
        let resource = group.hasService ? "\(name)-endpoints" : name
        names.append(resource)
        plane.set(.endpoints, resource, MeshMessages.endpoints(resource, group, of: service))
      }
      plane.keep(.endpoints, names)
    case .routes:
      if self.usesInlineRoutes {
        plane.set(.listener, MeshMessages.target, MeshMessages.listener(inline: state))
      } else {
        plane.set(.routes, MeshMessages.routes, MeshMessages.any(MeshMessages.routeConfiguration(state)))
        plane.set(.listener, MeshMessages.target, MeshMessages.listener(inline: nil))
      }
    case .brokenEndpoints(let name):
      guard var group = state.groups[name] else { return }
      group.servers = [[self.servers - 1]]
      let resource = group.hasService ? "\(name)-endpoints" : name
      let broken = MeshMessages.endpoints(resource, group, of: service, isBroken: true)
      plane.set(.endpoints, resource, broken)
    case .nonsense(let number):
      plane.sendNonsense(Self.nonsense(number))
    }
  }

  private static func nonsense(_ number: Int) -> MeshControlPlane.Response {
    .with { response in
      response.versionInfo = "nonsense"
      switch number {
      case 0: response.typeURL = "type.googleapis.com/mesh.Unknown"
      case 1:
        response.typeURL = MeshType.cluster.url
        response.resources = [.with { $0.typeURL = MeshType.endpoints.url }]
      case 2:
        response.typeURL = MeshType.endpoints.url
        response.resources = [
          .with {
            $0.typeURL = MeshType.endpoints.url
            $0.value = MeshMessages.any(Text("nonsense")).value
          }
        ]
      case 3:
        response.typeURL = MeshType.routes.url
        response.resources = [MeshMessages.any(Envoy_Config_Cluster_V3_Cluster.with { $0.name = "other" })]
      default: break
      }
    }
  }
}
