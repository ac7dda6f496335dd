internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import XCTest

/// Names that fail, change and are large.
final class FleetNamesTests: XCTestCase {
  private func resolver(_ names: PythonServer) throws -> DNSResolver {
    let address = try XCTUnwrap(EndpointAddress("127.0.0.1:\(names.port("dns"))"))
    return DNSResolver(
      DNSResolver.Configuration(
        nameServers: ResolverConfiguration(servers: [address]),
        hostsFile: nil,
        minimumInterval: .milliseconds(100)
      )
    )
  }

  private func publish(_ names: PythonServer, _ rcode: String, _ addresses: [String] = []) async throws {
    try await names.command(["rcode": rcode, "addresses": addresses])
  }

  /// Waits until the name server was asked so many more times.
  private func waitForQueries(_ count: Int, _ names: PythonServer) async throws {
    let start = try await names.command([:]).queries ?? 0
    for _ in 0..<6_000 {
      if try await names.command([:]).queries ?? 0 >= start + count { return }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw LoopbackServerError("the name server is not asked again")
  }

  private func port(_ address: String) throws -> Int {
    try XCTUnwrap(EndpointAddress(address).flatMap { if case .ip(_, let port) = $0 { port } else { nil } })
  }

  func testNamesThatFailAreEmptyAndWrong() async throws {
    let fleet = try await Fleet.shared()
    let names = try await PythonServer.shared(.names)
    try await self.publish(names, "SERVFAIL")
    let first = try await fleet.start("127.0.0.2")
    let port = try self.port(first)
    let second = try await fleet.start("127.0.0.3:\(port)")
    let resolver = try self.resolver(names)
    try await FleetClient.run(
      [],
      port: port,
      configure: { $0.channel.resolver = resolver },
      { fleetClient in
        let waiting = Recorder<ResponseMessage<EchoResponse>>()
        func wait() {
          let options = CallOptions(waitForReady: true)
          fleetClient.client.unary(TestMethods.echo, EchoRequest(), options: options) { waiting.record($0) }
        }
        wait()
        let unknown = await fleetClient.call(10)
        for error in unknown.failures { ExpectedError(.unavailable, "fleet.test").check(error, "SERVFAIL") }
        XCTAssertEqual(waiting.values.count, 0)

        // Nobody listens at the first address.
        try await self.publish(names, "NOERROR", ["127.0.0.9", "127.0.0.2"])
        try await waiting.wait(for: 1, of: "calls that waited")
        var good = await fleetClient.call(100)
        XCTAssertEqual(good[first], 100)

        // What is known is kept.
        try await self.publish(names, "SERVFAIL", [])
        try await self.waitForQueries(2, names)
        good.add(await fleetClient.call(100))
        XCTAssertEqual(good[first], 200)

        try await self.publish(names, "NOERROR", [])
        let draining = try await fleetClient.callUntil("no addresses", inRowsOf: 1) { !$0.failures.isEmpty }
        let empty = await fleetClient.call(10)
        for error in empty.failures { ExpectedError(.unavailable, "no addresses").check(error, "empty") }
        wait()
        XCTAssertEqual(empty.failures.count, 10)

        try await self.publish(names, "NOERROR", ["127.0.0.2", "127.0.0.3"])
        try await waiting.wait(for: 2, of: "calls that waited")
        let both = try await fleetClient.callUntil("both answer") { $0.succeeded.count == 2 }
        for response in waiting.values { XCTAssertEqual(response.code, .ok, "\(response)") }

        var sum = good
        for tally in [draining, both] { sum.add(tally) }
        FleetReport.line(
          "DNS: 1 wrong beside 1 good address, then SERVFAIL, empty, 2 addresses",
          calls: sum.callCount + waiting.values.count,
          failed: sum.failures.count,
          "besides \(unknown.failures.count) of 10 before the first answer, \(empty.failures.count) of 10 while it was empty"
        )
        XCTAssertEqual(unknown.failures.count, 10)
        XCTAssertEqual(sum.failures.count, 1, "the one that found the answer empty: \(sum.failures)")
      }
    )
    try await fleet.stop([first, second])
  }

  /// As many as a message of DNS has room for, by TCP.
  func testThousandsOfAddressesByDNS() async throws {
    let fleet = try await Fleet.shared()
    let names = try await PythonServer.shared(.names)
    let server = try await fleet.start("0.0.0.0")
    let port = try self.port(server)
    try await self.publish(names, "NOERROR", Self.loopbackAddresses(4_000))
    let resolver = try self.resolver(names)
    try await FleetClient.run(
      [],
      .randomSubset(of: .roundRobin, size: 20),
      port: port,
      configure: { $0.channel.resolver = resolver },
      { fleetClient in
        let tally = await fleetClient.call(500)
        let peers = try await fleet.stats(server).peers
        FleetReport.line("4,000 addresses by DNS, subset of 20", tally, "\(peers) connections")
        tally.expectNoFailures()
        // Connections to different addresses may have the same port here.
        XCTAssertTrue((15...20).contains(peers), "\(peers)")
      }
    )
    try await fleet.stop(server)
  }

  func testFiveThousandAddresses() async throws {
    let fleet = try await Fleet.shared()
    let server = try await fleet.start("0.0.0.0")
    let port = try self.port(server)
    let addresses = Self.loopbackAddresses(5_000).map { "\($0):\(port)" }
    try await FleetClient.run(Array(addresses.prefix(3))) { fleetClient in
      var sum = await fleetClient.call(100)
      let load = FleetLoad(fleetClient.client, workers: 4)
      let before = try Memory.resident()
      let files = try Self.fileCount()
      fleetClient.resolver.update(try FleetClient.endpoints(addresses))
      do {
        for _ in 0..<1_000 where try Self.fileCount() < files + 4_997 { try await load.wait(for: 100) }
        try await load.wait(for: 5_000)
      } catch {
        _ = await load.stop()
        throw error
      }
      let after = try Memory.resident()
      sum.add(await load.stop())
      let connections = try Self.fileCount() - files + 3
      // Back to few: the others are closed.
      fleetClient.resolver.update(try FleetClient.endpoints(Array(addresses.prefix(3))))
      sum.add(await fleetClient.call(100))
      let growth = Double(after - before) / 5_000 / 1_024
      FleetReport.line(
        "from 3 to 5,000 addresses and back",
        sum,
        "\(connections) connections, \(Memory.mebibytes(after - before)): \((growth * 10).rounded() / 10) KiB each"
      )
      XCTAssertEqual(Double(connections), 5_000, accuracy: 10, "what else the process opens")
      sum.expectNoFailures()
      XCTAssertLessThan(growth, 128)
    }
    try await fleet.stop(server)
  }

  /// How many files this process has open.
  private static func fileCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }

  private static func loopbackAddresses(_ count: Int) -> [String] {
    (0..<count).map { "127.1.\($0 / 250).\($0 % 250 + 1)" }
  }
}
