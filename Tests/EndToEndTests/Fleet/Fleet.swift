internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import Synchronization

/// Servers of grpcio that share a process, each with an address of its own.
struct Fleet: Sendable {
  struct Stats: Sendable {
    var started: Int
    var ended: Int
    /// The numbers of the calls that are, or were, held, in the order of their starts.
    var held: [Int]
    /// How many addresses and ports calls came from.
    var peers: Int
  }

  let process: PythonServer

  /// In the process that all tests share.
  static func shared() async throws -> Fleet {
    Fleet(process: try await PythonServer.shared(.fleet))
  }

  /// Calls `body` with so many fleets in processes of their own, and ends these.
  static func withProcesses<Result>(
    _ count: Int,
    _ body: ([Fleet]) async throws -> Result
  ) async throws -> Result {
    let starts = (0..<count).map { _ in Task { try await PythonServer.start(.fleet) } }
    var fleets: [Fleet] = []
    for start in starts {
      if let process = try? await start.value { fleets.append(Fleet(process: process)) }
    }
    do {
      guard fleets.count == count else { throw LoopbackServerError("not all servers have started") }
      let result = try await body(fleets)
      for fleet in fleets { fleet.process.kill() }
      return result
    } catch {
      for fleet in fleets { fleet.process.kill() }
      throw error
    }
  }

  /// Starts a server, on a free port or on the address that it had before.
  ///
  /// - Parameters:
  ///   - age: The milliseconds after which it renews a connection; 0 for none.
  ///   - isSimple: Whether it is a small server by h2, that refuses what comes behind its GOAWAY.
  /// - Returns: Its address.
  @discardableResult
  func start(
    _ address: String,
    streams: Int = 0,
    hasHealth: Bool = false,
    age: Int = 0,
    isSimple: Bool = false
  ) async throws -> String {
    let address = address.contains(":") ? address : "\(address):0"
    let answer = try await self.process.command([
      "do": "start", "address": address, "streams": streams, "health": hasHealth, "age": age,
      "simple": isSimple,
    ])
    guard let address = answer.address else { throw LoopbackServerError("no address") }
    return address
  }

  /// Starts servers on 127.0.0.2 and the addresses that follow.
  func start(_ count: Int, hasHealth: Bool = false, isSimple: Bool = false) async throws -> [String] {
    var addresses: [String] = []
    for index in 0..<count {
      addresses.append(try await self.start("127.0.0.\(2 + index)", hasHealth: hasHealth, isSimple: isSimple))
    }
    return addresses
  }

  /// Sends GOAWAY and ends the server once it has no call left, after so many seconds at the latest.
  func stop(_ address: String, grace: Double = 0) async throws {
    try await self.process.command(["do": "stop", "address": address, "grace": grace])
  }

  func stop(_ addresses: [String]) async throws {
    for address in addresses { try await self.stop(address) }
  }

  /// Calls fail with `code` from now on; with 0 they do not.
  func fail(_ address: String, _ code: Int) async throws {
    try await self.process.command(["do": "behave", "address": address, "code": code])
  }

  /// Calls take this long in the median, and by chance more or less.
  ///
  /// - Parameter spread: The standard deviation of the logarithm.
  func delay(_ address: String, median: Duration, spread: Double) async throws {
    try await self.process.command([
      "do": "behave", "address": address, "delay": median / .seconds(1), "spread": spread,
    ])
  }

  /// The server reports this load with each call.
  func report(_ load: LoadReport, from address: String) async throws {
    try await self.process.command([
      "do": "behave", "address": address, "load": load.encoded.base64EncodedString(),
    ])
  }

  /// Lets calls that are held go on, the earliest first; 0 for all, and those that come.
  func release(_ address: String, _ count: Int = 0) async throws {
    try await self.process.command(["do": "release", "address": address, "count": count])
  }

  func setHealth(_ address: String, _ service: String, _ status: String) async throws {
    try await self.process.command([
      "do": "health", "address": address, "service": service, "status": status,
    ])
  }

  func stats(_ address: String) async throws -> Stats {
    let answer = try await self.process.command(["do": "stats", "address": address])
    guard let started = answer.started, let ended = answer.ended, let held = answer.held,
      let peers = answer.peers
    else { throw LoopbackServerError("not the stats: \(answer)") }
    return Stats(started: started, ended: ended, held: held, peers: peers)
  }

  /// Waits until so many calls are, or were, held.
  func waitForHeld(_ count: Int, at addresses: [String]) async throws {
    var held = -1
    for _ in 0..<6_000 where held < count {
      held = 0
      for address in addresses { held += try await self.stats(address).held.count }
      if held < count { try await Task.sleep(for: .milliseconds(5)) }
    }
    guard held >= count else { throw LoopbackServerError("\(held) calls are held in place of \(count)") }
  }
}

extension LoadReport {
  /// `xds.data.orca.v3.OrcaLoadReport`, with the CPU's utilization and the calls per second.
  fileprivate var encoded: Data {
    var data = Data()
    for (tag, number) in [(UInt8(0x09), self.cpuUtilization), (0x31, self.queriesPerSecond)] {
      data.append(tag)
      withUnsafeBytes(of: number.bitPattern.littleEndian) { data.append(contentsOf: $0) }
    }
    return data
  }
}
