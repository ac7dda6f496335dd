/// Servers in a process of mesh_servers.py.
struct MeshServers: Sendable {
  struct Certificates: Decodable, Sendable {
    var roots: String
    var server: String
    var serverKey: String
    var client: String
    var clientKey: String

    /// For servers that demand certificates.
    var tls: JSON {
      ["certificate": .string(self.server), "key": .string(self.serverKey), "roots": .string(self.roots)]
    }
  }

  /// By zone: `a0` to `a3` on 127.0.1.1 and so on, `b0` to `b2`, `c0` to `c2`.
  static let zones = ["a": 4, "b": 3, "c": 3]

  let process: CommandProcess
  /// By name.
  private(set) var addresses: [String: String] = [:]

  init(process: CommandProcess) {
    self.process = process
  }

  /// Starts ten servers in three zones.
  mutating func startAll() async throws {
    for (zone, (name, count)) in Self.zones.sorted(by: { $0.key < $1.key }).enumerated() {
      for index in 0..<count {
        self.addresses["\(name)\(index)"] = try await self.start(
          "\(name)\(index)",
          "127.0.\(zone + 1).\(index + 1):0"
        )
      }
    }
  }

  /// Starts a server, on the address that it had before if none is given.
  @discardableResult
  func start(_ name: String, _ address: String = "", tls: JSON = .null) async throws -> String {
    struct Answer: Decodable { var address: String }
    let command: JSON = ["do": "start", "name": .string(name), "address": .string(address), "tls": tls]
    return try await self.process.command(command, as: Answer.self).address
  }

  func stop(_ name: String, grace: Double = 0) async throws {
    try await self.process.command(["do": "stop", "name": .string(name), "grace": .number(grace)])
  }

  func behave(_ name: String, code: Int) async throws {
    try await self.process.command(["do": "behave", "name": .string(name), "code": .number(Double(code))])
  }

  /// Each answer of a server says that it is so busy, with 100 calls a second.
  func report(_ name: String, utilization: Double) async throws {
    try await self.process.command([
      "do": "behave", "name": .string(name), "utilization": .number(utilization),
    ])
  }

  /// How many calls a server has begun.
  func started(_ name: String) async throws -> Int {
    struct Answer: Decodable { var started: Int }
    return try await self.process.command(["do": "stats", "name": .string(name)], as: Answer.self).started
  }

  /// Writes certificates into a folder: those of a new authority, or only a new one for the client.
  ///
  /// - Parameter server: The names in the certificate of servers.
  func certificates(
    in folder: String,
    client: String,
    server: [String] = ["server.mesh.example", "127.0.0.1"],
    isRenewal: Bool = false
  ) async throws -> Certificates {
    let command: JSON = [
      "do": "certificates", "name": "", "folder": .string(folder), "client": .string(client),
      "server": .array(server.map { .string($0) }),
      "renewal": .bool(isRenewal),
    ]
    return try await self.process.command(command, as: Certificates.self)
  }

  /// Addresses of the servers of a zone, in order.
  func zone(_ name: String) -> [String] {
    self.addresses.filter { $0.key.hasPrefix(name) }.sorted { $0.key < $1.key }.map(\.value)
  }
}
