/// A control plane in a process of control_plane.py.
struct MeshPlane: Sendable {
  enum Kind: String, Sendable, CaseIterable {
    case listener, route, cluster, endpoints
  }

  /// A request of a client.
  struct Record: Decodable, Sendable {
    var stream: Int
    var type: String
    var version: String
    var nonce: String
    var names: [String]
    /// The reason of a NACK.
    var error: String?
  }

  /// What a client says of a type.
  struct Summary: Decodable, Sendable, Hashable {
    /// The resources that it asks for.
    var names: [String]
    /// `ack`, `nack` or `none`, of the last response.
    var outcome: String
    var error: String
    /// The resources of the last response.
    var sent: [String]
  }

  struct Records: Decodable, Sendable {
    var records: [Record]
    var summary: [String: Summary]
    /// How many there are now.
    var streams: Int
    /// Whether nothing is to be answered, and nothing happened for a moment.
    var quiet: Bool
  }

  /// A part of a report of loads, as protobuf's JSON with numbers as strings.
  struct Report: Decodable, Sendable {
    struct Cluster: Decodable, Sendable {
      struct Locality: Decodable, Sendable {
        struct Name: Decodable, Sendable { var zone: String? }
        var locality: Name?
        var totalSuccessfulRequests: String?
        var totalErrorRequests: String?
        var totalIssuedRequests: String?
        var totalRequestsInProgress: String?
      }
      struct Drop: Decodable, Sendable { var category: String? }
      var clusterName: String?
      var clusterServiceName: String?
      var upstreamLocalityStats: [Locality]?
      /// Of those, the ones with a category.
      var droppedRequests: [Drop]?
      var totalDroppedRequests: String?
    }
    var clusterStats: [Cluster]?
  }

  let process: CommandProcess
  let name: String

  /// Starts to listen, on the address that it had before or a free one.
  @discardableResult
  func start(tls: JSON = .null) async throws -> String {
    struct Answer: Decodable { var address: String }
    return try await self.process.command(self.command("start", ["tls": tls]), as: Answer.self).address
  }

  func stop() async throws { try await self.run("stop") }

  /// Ends all streams.
  func close() async throws { try await self.run("close") }

  /// Makes these all resources of a kind.
  func set(_ kind: Kind, _ resources: [JSON]) async throws {
    try await self.run("set", ["type": .string(kind.rawValue), "resources": .array(resources)])
  }

  /// Adds resources, or changes those with the same names.
  func put(_ kind: Kind, _ resources: JSON...) async throws {
    try await self.run("put", ["type": .string(kind.rawValue), "resources": .array(resources)])
  }

  func remove(_ kind: Kind, _ names: String...) async throws {
    try await self.run(
      "remove",
      ["type": .string(kind.rawValue), "names": .array(names.map { .string($0) })]
    )
  }

  /// Sends one response on each stream, whatever is asked for.
  func send(_ type: String, _ resources: [JSON]) async throws {
    try await self.run("send", ["type": .string(type), "resources": .array(resources)])
  }

  /// Holds back the responses of these kinds, and of no others.
  func hold(_ kinds: Kind...) async throws {
    try await self.run("hold", ["types": .array(kinds.map { .string($0.rawValue) })])
  }

  /// Ends each new stream with this code; 0 for none.
  func refuse(_ code: Int) async throws { try await self.run("refuse", ["code": .number(Double(code))]) }

  func records() async throws -> Records {
    try await self.process.command(self.command("records"), as: Records.self)
  }

  /// The interval of load reports.
  func report(every seconds: Double) async throws {
    try await self.run("interval", ["seconds": .number(seconds)])
  }

  func reports() async throws -> [Report] {
    struct Answer: Decodable { var reports: [Report] }
    return try await self.process.command(self.command("reports"), as: Answer.self).reports
  }

  private func run(_ verb: String, _ more: JSON = [:]) async throws {
    try await self.process.command(self.command(verb, more))
  }

  private func command(_ verb: String, _ more: JSON = [:]) -> JSON {
    let command: JSON = ["do": .string(verb), "plane": .string(self.name)]
    return command.merging(more)
  }
}
