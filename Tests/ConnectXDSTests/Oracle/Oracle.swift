internal import Connect
internal import ConnectXDS

/// grpcio and seeded configurations, in a process of oracle.py.
struct Oracle: Sendable {
  struct Call: Decodable, Sendable {
    var path: String
    var metadata: [[String]]
    var count: Int
    /// Whether only codes are to be compared.
    var codes: Bool?

    var pairs: [(String, String)] { self.metadata.map { ($0[0], $0[1]) } }
  }

  /// A configuration in a control plane for this client.
  struct Scenario: Decodable, Sendable {
    var address: String
    var target: String
    var features: [String]
    /// Of each step.
    var calls: [[Call]]
    /// Whether the step has the target's listener.
    var hasListener: [Bool]
  }

  /// What became of calls that are equal.
  struct Outcome: Decodable, Sendable, Hashable {
    var servers: [String: Int] = [:]
    var codes: [String: Int] = [:]
  }

  struct Step: Decodable, Sendable {
    var calls: [Outcome]
    var summary: [String: MeshPlane.Summary]
  }

  let process: CommandProcess

  static func start() async throws -> Oracle {
    Oracle(process: try await .start("oracle.py"))
  }

  /// What grpcio does with a seed.
  func reference(_ seed: Int) async throws -> [Step] {
    struct Answer: Decodable { var steps: [Step] }
    return try await self.process.command(self.command("reference", seed), as: Answer.self).steps
  }

  /// What this client does with a seed, and the scenario.
  func run(_ seed: Int) async throws -> (steps: [Step], scenario: Scenario) {
    let scenario = try await self.process.command(self.command("prepare", seed), as: Scenario.self)
    let server = XDSBootstrap.Server(uri: scenario.address, credentials: .insecure)
    let node = XDSBootstrap.Node(
      id: "oracle",
      cluster: "tests",
      locality: XDSLocality(region: "r", zone: "z0")
    )
    let bootstrap = XDSBootstrap(servers: [server], node: node)
    let steps = try await MeshClient.run(bootstrap, target: scenario.target) { client in
      var steps: [Step] = []
      for (index, calls) in scenario.calls.enumerated() {
        if index > 0 {
          try await self.process.command(
            self.command("step", seed).merging(["index": .number(Double(index))])
          )
        }
        if index == 0 { _ = await client.call(calls[0].path, calls[0].pairs) }
        _ = try await self.settle(seed)
        // As the oracle does: connections are opened by the first calls of some policies.
        for call in calls where !call.metadata.contains(where: { $0[0] == "x-delay" }) {
          for _ in 0..<2 { _ = await client.call(call.path, call.pairs) }
        }
        try await Task.sleep(for: .milliseconds(150))
        var outcomes: [Outcome] = []
        for call in calls { outcomes.append(await client.outcome(of: call)) }
        steps.append(Step(calls: outcomes, summary: try await self.settle(seed)))
      }
      return steps
    }
    try await self.process.command(self.command("finish", seed))
    return (steps, scenario)
  }

  private func settle(_ seed: Int) async throws -> [String: MeshPlane.Summary] {
    struct Answer: Decodable { var summary: [String: MeshPlane.Summary] }
    return try await self.process.command(self.command("settle", seed), as: Answer.self).summary
  }

  private func command(_ verb: String, _ seed: Int) -> JSON {
    ["do": .string(verb), "seed": .number(Double(seed))]
  }
}

extension MeshClient {
  /// Makes a call often, until it is unlikely that more calls reach another server or get another code.
  fileprivate func outcome(of call: Oracle.Call) async -> Oracle.Outcome {
    var outcome = Oracle.Outcome()
    var (made, since) = (0, 0)
    while made < call.count
      || (call.codes != true && since < 10 * (outcome.servers.count + outcome.codes.count))
    {
      let answer = await self.call(call.path, call.pairs)
      made += 1
      let isKnown =
        outcome.codes[answer.code.oracleName] != nil
        && (answer.server.map { outcome.servers[$0] != nil } ?? true)
      since = isKnown ? since + 1 : 0
      outcome.codes[answer.code.oracleName, default: 0] += 1
      if let server = answer.server { outcome.servers[server, default: 0] += 1 }
    }
    return outcome
  }
}

extension Code {
  /// The name in gRPC.
  var oracleName: String { self == .canceled ? "CANCELLED" : self.name.uppercased() }
}
