internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Synchronization
internal import XCTest

/// Limits that control planes set for calls.
final class MeshLimitTests: XCTestCase {
  /// How many calls are made beyond a limit.
  private static let excess = 3

  /// How many calls to a cluster were dropped, and all categories, as the control plane knows them.
  private func drops(_ mesh: Mesh, of cluster: String) async throws -> (count: Int, categories: [String]) {
    var count = 0
    var categories: [String] = []
    for report in try await mesh.plane.reports() {
      for stats in report.clusterStats ?? [] where stats.clusterName == cluster {
        count += Int(stats.totalDroppedRequests ?? "0") ?? 0
        categories += (stats.droppedRequests ?? []).compactMap(\.category)
      }
    }
    return (count, categories)
  }

  /// Calls beyond the limit fail at once, no server sees them, and the control plane hears of them (gRFC A32).
  func testCircuitBreaker() async throws {
    try await Mesh.run { mesh in
      let limits = ["one": 1, "three": 3]
      try await mesh.plane.report(every: 0.1)
      for (cluster, limit) in limits {
        let locality = MeshResources.locality("a", Array(mesh.servers.zone("a").prefix(1)))
        let breakers: JSON = ["thresholds": [["max_requests": .number(Double(limit))]]]
        try await mesh.plane.put(.endpoints, MeshResources.endpoints(cluster, [locality]))
        try await mesh.plane.put(
          .cluster,
          MeshResources.cluster(cluster, ["lrs_server": ["self": [:]], "circuit_breakers": breakers])
        )
      }
      try await mesh.serve(limits.keys.map { MeshResources.route(["prefix": "/mesh.\($0)/"], to: $0) })
      try await mesh.withClient { client in
        for (cluster, limit) in limits {
          try await self.check(mesh, client, cluster, limit: limit)
          var last = 0
          try await eventually("\(Self.excess) calls are reported as dropped, but \(last)") {
            let drops = try await self.drops(mesh, of: cluster)
            XCTAssertEqual(drops.categories, [], "what a circuit breaker drops has no category")
            last = drops.count
            return last == Self.excess
          }
        }
      }
    }
  }

  private func check(_ mesh: Mesh, _ client: MeshClient, _ cluster: String, limit: Int) async throws {
    let path = "/mesh.\(cluster)/Call"
    let before = try await mesh.servers.started("a0")
    // They stay in flight until they are cancelled.
    let holders = (0..<limit).map { _ in
      Task { await client.call(path, [("x-delay", "600000")], timeout: .seconds(600)) }
    }
    try await eventually("\(limit) calls are in flight") {
      try await mesh.servers.started("a0") == before + limit
    }
    for _ in 0..<Self.excess {
      let answer = await client.call(path)
      XCTAssertEqual(answer.code, .unavailable)
      XCTAssertNil(answer.server)
      let message = answer.error?.message ?? ""
      XCTAssertTrue(message.contains("the cluster \"\(cluster)\""), message)
      XCTAssertTrue(message.contains("as many calls to") && message.contains("circuit breaker"), message)
    }
    let started = try await mesh.servers.started("a0")
    XCTAssertEqual(started, before + limit, "the server got a call beyond the limit")
    for holder in holders { holder.cancel() }
    for holder in holders {
      let code = await holder.value.code
      XCTAssertEqual(code, .canceled)
    }
    let answer = await client.call(path)
    XCTAssertEqual(answer.code, .ok, "\(String(reflecting: answer.error))")
  }

  /// Keeps the clusters of calls that were dropped, and of those that were sent.
  private final class Clusters: ChannelObserver {
    let dropped = Mutex<[String?]>([])
    let picked = Mutex<[String?]>([])

    func channel(to origin: Origin, did event: ChannelEvent) {
      switch event {
      case .dropped(_, let cluster): self.dropped.withLock { $0.append(cluster) }
      case .picked(_, _, let place): self.picked.withLock { $0.append(place.cluster) }
      default: break
      }
    }
  }

  /// Errors, metrics and reports of an aggregate cluster name the part that drops or takes a call.
  func testPartsOfAnAggregate() async throws {
    try await Mesh.run { mesh in
      try await mesh.plane.report(every: 0.1)
      let locality = MeshResources.locality("a", mesh.servers.zone("a"))
      func serve(limit: Int) async throws {
        let breakers: JSON = ["thresholds": [["max_requests": .number(Double(limit))]]]
        let settings: JSON = ["lrs_server": ["self": [:]], "circuit_breakers": breakers]
        try await mesh.plane.put(.cluster, MeshResources.cluster("part", settings))
      }
      try await mesh.plane.put(.endpoints, MeshResources.endpoints("part", [locality]))
      try await serve(limit: 0)
      try await mesh.plane.put(.cluster, MeshResources.aggregate("whole", of: ["part"]))
      try await mesh.serve([MeshResources.route(to: "whole")])
      let clusters = Clusters()
      try await MeshClient.run(
        Mesh.bootstrap(mesh.address),
        target: Mesh.target,
        configure: { $0.channel.observer = clusters },
        { client in
          // Until there is a connection, calls wait for it.
          var last: MeshClient.Answer?
          try await eventually("a call is refused, but \(String(reflecting: last))") {
            last = await client.call()
            return last?.error?.message?.contains("circuit breaker") == true
          }
          let message = last?.error?.message ?? ""
          XCTAssertTrue(message.contains("the cluster \"part\""), message)
          XCTAssertEqual(Set(clusters.dropped.withLock { $0 }), ["part"])
          try await eventually("the drop is reported") { try await self.drops(mesh, of: "part").count > 0 }
          let count = try await self.drops(mesh, of: "whole").count
          XCTAssertEqual(count, 0)
          try await serve(limit: 10)
          try await client.waitForServers(mesh.names("a"))
          XCTAssertEqual(Set(clusters.picked.withLock { $0 }), ["part"])
        }
      )
    }
  }

  /// A route's `max_stream_duration` is the deadline of calls that have a longer one, or none (gRFC A31).
  func testDeadlineOfARoute() async throws {
    try await Mesh.run { mesh in
      func route(_ limit: String) -> JSON {
        let duration: JSON = ["max_stream_duration": .string(limit)]
        return ["match": ["prefix": ""], "route": ["cluster": "a", "max_stream_duration": duration]]
      }
      try await mesh.serveClusters([route("60s")])
      try await mesh.withClient { client in
        try await client.waitForServers(mesh.names("a"))
        let delayed = await client.call("/mesh.Service/Call", [("x-delay", "600")], timeout: .seconds(60))
        XCTAssertEqual(delayed.code, .ok, "\(String(reflecting: delayed.error))")
        try await mesh.serve([route("0.3s")])
        var last: MeshClient.Answer?
        // The new route is used a moment later.
        try await eventually("the deadline is over, but \(String(reflecting: last))") {
          last = await client.call("/mesh.Service/Call", [("x-delay", "600")], timeout: .seconds(60))
          return last?.code == .deadlineExceeded
        }
        // A call's own deadline that is shorter counts.
        try await mesh.serve([route("60s")])
        let short = await client.call(
          "/mesh.Service/Call",
          [("x-delay", "600000")],
          timeout: .milliseconds(300)
        )
        XCTAssertEqual(short.code, .deadlineExceeded)
      }
    }
  }
}
