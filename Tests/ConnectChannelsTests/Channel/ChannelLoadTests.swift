import Connect
import ConnectTesting
import Logging
import NIOCore
import Synchronization
import XCTest

@testable import ConnectChannels

/// Servers that report their load on a stream of their own.
final class ChannelLoadTests: XCTestCase {
  /// How many warnings there were.
  private final class CountingLog: LogHandler {
    private let warnings = Mutex(0)
    var count: Int { self.warnings.withLock { $0 } }
    var metadata: Logger.Metadata {
      get { [:] }
      set {}
    }
    var logLevel: Logger.Level {
      get { .warning }
      set {}
    }
    subscript(metadataKey key: String) -> Logger.MetadataValue? {
      get { nil }
      set {}
    }

    func log(event: LogEvent) { self.warnings.withLock { $0 += 1 } }
  }

  private static let path = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
  private let a = "10.0.0.1:80"
  private let b = "10.0.0.2:80"

  private final class Servers {
    /// The load streams, by address, with what was asked.
    var streams: [String: FakeStream] = [:]
    var requests: [[UInt8]] = []
    /// Called with streams for reports, unless they shall wait.
    var answer: ((FakeStream) -> Void)?
    /// A report that comes with each call.
    var trailers: Headers = ["grpc-status": ["0"]]
  }

  private func fleet(
    _ servers: Servers,
    _ configuration: BalancingPolicy.WeightedRoundRobin = .init(
      outOfBandPeriod: .milliseconds(1_500),
      blackoutPeriod: .zero
    )
  ) -> FakeFleet {
    let fleet = FakeFleet([self.a, self.b]) { $0.balancing = .weightedRoundRobin(configuration) }
    fleet.network.answer = { stream in
      guard stream.request.target == Self.path else {
        stream.respond()
        stream.end(servers.trailers)
        return
      }
      if case .complete(let body) = stream.request.body {
        servers.requests.append(Array(body.readableBytesView))
      }
      servers.streams[stream.address] = stream
      servers.answer?(stream)
    }
    return fleet
  }

  /// A report of as many queries per second at half the capacity, in a frame.
  private func report(_ queries: Double) -> ByteBuffer {
    var message = ByteBuffer()
    for (field, value) in [(UInt8(1), 0.5), (6, queries)] {
      message.writeInteger(field << 3 | 1)
      message.writeInteger(value.bitPattern, endianness: .little)
    }
    var frame = ByteBuffer()
    frame.writeInteger(UInt8(0))
    frame.writeInteger(UInt32(message.readableBytes))
    frame.writeBuffer(&message)
    return frame
  }

  /// How a hundred calls are spread.
  private func shares(_ fleet: FakeFleet) -> [Int] {
    let before = fleet.network.counts
    for _ in 0..<100 { XCTAssertTrue(fleet.call().hasEnded) }
    return [self.a, self.b].map { (fleet.network.counts[$0] ?? 0) - (before[$0] ?? 0) }
  }

  func testReportsDecideTheShares() {
    let servers = Servers()
    let fleet = self.fleet(servers)
    XCTAssertEqual(self.shares(fleet), [51, 51], "with a stream to each")
    XCTAssertEqual(servers.streams.count, 2)
    // Every 1.5 seconds: 1 s and 500,000,000 ns.
    let frame: [UInt8] = [0, 0, 0, 0, 10, 0x0a, 8, 0x08, 1, 0x10, 0x80, 0xca, 0xb5, 0xee, 1]
    XCTAssertEqual(servers.requests, [frame, frame])
    fleet.run {
      servers.streams[self.a]?.send(self.report(100))
      servers.streams[self.b]?.send(self.report(300))
    }
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(self.shares(fleet), [25, 75])
    // What calls bring does not count.
    let bytes = self.report(500).getSlice(at: 5, length: 18) ?? ByteBuffer()
    servers.trailers["endpoint-load-metrics-bin"] = [
      String(buffer: Base64.encode(bytes, alphabet: .standard, isPadded: false))
    ]
    _ = self.shares(fleet)
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(self.shares(fleet), [25, 75])
    // A report in two pieces, and two in one.
    var first = self.report(300)
    let rest = first.getSlice(at: 7, length: first.readableBytes - 7) ?? ByteBuffer()
    first.moveWriterIndex(to: 7)
    fleet.run {
      servers.streams[self.a]?.send(first)
      servers.streams[self.a]?.send(rest)
      var two = self.report(1)
      two.writeImmutableBuffer(self.report(100))
      servers.streams[self.b]?.send(two)
    }
    fleet.advance(by: .seconds(1))
    XCTAssertEqual(self.shares(fleet), [75, 25])
  }

  /// Streams that end are made again, after a backoff, and on the next connection.
  func testStreamsThatEnd() {
    let servers = Servers()
    let fleet = self.fleet(servers)
    _ = self.shares(fleet)
    fleet.run { servers.streams[self.a]?.end(["grpc-status": ["14"]]) }
    XCTAssertEqual(servers.requests.count, 2)
    fleet.advance(by: .seconds(2))
    XCTAssertEqual(servers.requests.count, 3)
    fleet.run { servers.streams[self.a]?.send(ByteBuffer(bytes: [1, 0, 0, 0, 0])) }
    XCTAssertEqual(servers.streams[self.a]?.isCancelled, true)
    fleet.advance(by: .seconds(4))
    XCTAssertEqual(servers.requests.count, 4)
    // A server that goes away is not kept by the stream.
    fleet.run { fleet.network.open(at: self.a).forEach { $0.goAway() } }
    XCTAssertEqual(fleet.network.connections.filter(\.isClosed).count, 1)
    fleet.advance(by: .seconds(5))
    XCTAssertEqual(servers.requests.count, 5)
    // It keeps the channel from nothing.
    fleet.advance(by: .seconds(1_900))
    XCTAssertEqual(fleet.channel.connectivity, .idle)
    XCTAssertTrue(fleet.network.connections.allSatisfy(\.isClosed))
  }

  func testServersWithoutReports() {
    let servers = Servers()
    servers.answer = { stream in
      stream.respond(["grpc-status": ["12"]])
      stream.end(["grpc-status": ["12"]])
    }
    let fleet = self.fleet(servers)
    _ = self.shares(fleet)
    fleet.advance(by: .seconds(600))
    XCTAssertEqual(servers.requests.count, 2)
    XCTAssertEqual(self.shares(fleet), [50, 50])
  }

  /// Servers that speak HTTP/1.1, and close each connection, have it said once.
  func testServersWithoutHTTP2() {
    let log = CountingLog()
    let fleet = FakeFleet([self.a, self.b], logger: Logger(label: "test", factory: { _ in log })) {
      $0.balancing = .weightedRoundRobin(.init(outOfBandPeriod: .seconds(1)))
      $0.healthCheckedService = ""
    }
    fleet.network.standard = .accepts(.http1, streams: 1)
    fleet.network.answer = { stream in
      stream.respond()
      stream.end()
      fleet.network.connections.last { !$0.isClosed }?.goAway()
    }
    for _ in 0..<20 {
      XCTAssertTrue(fleet.call().hasEnded)
      fleet.advance(by: .seconds(10))
    }
    XCTAssertEqual(log.count, 4, "of health and load, for each server")
  }

  /// Streams of the channel's own are no use of it, however often they are made again.
  func testStreamsThatKeepEndingLetTheChannelBecomeIdle() async {
    let servers = Servers()
    let fleet = self.fleet(servers)
    _ = self.shares(fleet)
    let snapshot = await fleet.channel.snapshot()
    XCTAssertEqual(snapshot.endpoints.map(\.startedCalls), [50, 50])
    XCTAssertEqual(snapshot.endpoints.map(\.calls), [0, 0])
    for _ in 0..<4 {
      fleet.advance(by: .seconds(600))
      fleet.run { for stream in servers.streams.values { stream.end(["grpc-status": ["14"]]) } }
    }
    XCTAssertEqual(fleet.channel.connectivity, .idle)
  }

  /// Weights of the resolver need no reports.
  func testOtherSources() {
    let servers = Servers()
    let fleet = self.fleet(servers, .init(source: .resolver, outOfBandPeriod: .seconds(1)))
    XCTAssertEqual(self.shares(fleet), [50, 50])
    XCTAssertEqual(servers.requests.count, 0)
  }
}
