internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import SwiftProtobuf
internal import XCTest

@testable internal import ConnectHTTP3

/// Calls over sockets and paths that lose, repeat, delay and change what they carry, or end. The same without sockets, in virtual
/// time, is in `HTTP3NetworkTests`.
final class HTTP3PathTests: XCTestCase {
  /// A client, an HTTP client below it, and the network between them and a server.
  private struct Path {
    let proxy: UDPProxy
    let httpClient: NIOHTTPClient
    let client: ProtocolClient
    let endpoint: any HTTPEndpoint

    func get(_ target: String) async -> StreamRecord {
      await StreamRecord.run(
        HTTPStreamRequest(method: .get, target: target, headers: [:], body: .complete(ByteBuffer())),
        on: self.endpoint
      )
    }
  }

  private func withPath(
    to kind: PythonHTTP3Server.Kind = .aioquic,
    seed: UInt64 = 1,
    _ conditions: UDPProxy.Conditions = UDPProxy.Conditions(),
    trusting others: [UInt8] = [],
    change: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (Path) async throws -> Void
  ) async throws {
    let server = try await PythonHTTP3Server.shared()
    let proxy = try await UDPProxy(to: server.port(kind), seed: seed, conditions)
    var configuration = server.configuration()
    configuration.tls.trustRoots = .pemBytes(server.authority + others)
    change(&configuration)
    let httpClient = NIOHTTPClient(configuration: configuration)
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: "https://localhost:\(proxy.port)",
        networkProtocol: .connect,
        codec: ProtoCodec(),
        timeout: .seconds(60)
      )
    )
    let endpoint = try httpClient.endpoint(
      for: Origin(scheme: .https, host: "localhost", port: proxy.port),
      on: nil,
      requiresHTTP2: false
    )
    do {
      try await body(Path(proxy: proxy, httpClient: httpClient, client: client, endpoint: endpoint))
    } catch {
      XCTFail("\(error)")
    }
    await httpClient.shutdown(within: .zero)
    try await proxy.stop()
  }

  /// Calls of several kinds at the same time, each of which has to succeed.
  private static func makeCalls(_ client: ProtocolClient, _ what: String) async throws {
    let text = String(repeating: "0123456789", count: 1000)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<Int32(10) {
        group.addTask {
          let response = await client.unary(
            TestMethods.echo,
            .with {
              $0.payload.text = text
              $0.payload.small = index
              $0.instruction.responseBytes = 20_000
            }
          )
          XCTAssertEqual(
            response.message?.payload.text == text,
            true,
            "\(what): \(String(describing: response.error))"
          )
          XCTAssertEqual(response.message?.padding.count, 20_000, what)
        }
      }
      group.addTask {
        let stream = client.serverStream(
          TestMethods.count,
          .with {
            $0.instruction.messageCount = 100
            $0.instruction.responseBytes = 2000
          }
        )
        let outcome = try await Outcome(stream.results)
        XCTAssertEqual(outcome.code, .ok, "\(what): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.number), (0..<100).map { $0 }, what)
      }
      group.addTask { try await Self.converse(client, what) }
      try await group.waitForAll()
    }
  }

  /// Each message is sent after the answer to the one before.
  private static func converse(
    _ client: ProtocolClient,
    _ what: String,
    count: Int32 = 20,
    before: (Int32) async throws -> Void = { _ in }
  ) async throws {
    let stream = client.bidirectionalStream(TestMethods.converse)
    var answers = stream.messages.makeAsyncIterator()
    for index in 0..<count {
      try await before(index)
      try await stream.send(.with { $0.payload.small = index })
      let answer = try await answers.next()
      XCTAssertEqual(answer?.payload.small, index, what)
    }
    stream.finish()
    let end = try await answers.next()
    XCTAssertNil(end, what)
  }

  // MARK: What networks do to datagrams

  /// A size that the user knows is used if the path takes it; else the first calls take a little longer.
  func testKnownSizeOfDatagrams() async throws {
    for (largest, expected) in [(65_535, 8940), (1452, 1200)] {
      try await self.withPath(UDPProxy.Conditions(largest: largest)) { configuration in
        configuration.http3 = .alone(HTTP3Configuration(datagramSize: 8940))
      } _: { path in
        try await Self.makeCalls(path.client, "datagrams of 8,940 bytes where \(largest) bytes pass")
        let counts = try await path.proxy.counts()
        XCTAssertEqual(counts.largestFromClient, expected)
      }
    }
  }

  /// No datagram is larger than the network interface takes.
  func testKnownSizeOfDatagramsIsLimitedByTheInterface() async throws {
    XCTAssertEqual(DatagramSize.known(8940, possible: 65_508), 8940)
    XCTAssertEqual(DatagramSize.known(8940, possible: 1472), 1472)
    XCTAssertNil(DatagramSize.known(8940, possible: 1452))
    XCTAssertNil(DatagramSize.known(8940, possible: nil))
    XCTAssertNil(DatagramSize.known(1200, possible: 65_508))
    XCTAssertEqual(DatagramSize.known(20_000, possible: 65_508), 9200)

    let bootstrap = DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    let size = try await bootstrap.connect(host: "127.0.0.1", port: 9).flatMapThrowing { channel in
      defer { channel.close(promise: nil) }
      return UDPSocket.largestDatagram(of: channel)
    }.get()
    // IPv4 knows no larger packets than 65,535 bytes.
    let file = try String(contentsOfFile: "/sys/class/net/lo/mtu", encoding: .utf8)
    XCTAssertEqual(size, min(try XCTUnwrap(Int(file.prefix { $0.isNumber })), 65_535) - 28)
  }

  func testLoss() async throws {
    for percentage in [1, 10] {
      try await self.withPath(seed: UInt64(percentage), .init(lost: percentage)) { path in
        try await Self.makeCalls(path.client, "\(percentage) %")
        let counts = try await path.proxy.counts()
        XCTAssertGreaterThan(counts.lost, 0, "\(percentage) % of \(counts.arrived)")
      }
    }
  }

  func testReorderingAndDuplicates() async throws {
    try await self.withPath(.init(doubled: 10, reordered: 20)) { path in
      try await Self.makeCalls(path.client, "reordered")
    }
  }

  func testLongPath() async throws {
    try await self.withPath(.init(delay: .milliseconds(100))) { path in
      try await Self.makeCalls(path.client, "200 ms")
    }
  }

  func testGarbage() async throws {
    try await self.withPath(.init(garbage: 30)) { path in
      try await Self.makeCalls(path.client, "garbage")
    }
  }

  /// The client finds out by itself that the path takes more than 1,200 bytes (RFC 9000, section 14.3).
  func testPathThatTakesLargeDatagrams() async throws {
    try await self.withPath { path in
      let end = ContinuousClock.now + .seconds(30)
      var counts = try await path.proxy.counts()
      while counts.largestFromClient < 1400, ContinuousClock.now < end {
        try await Self.makeCalls(path.client, "large")
        counts = try await path.proxy.counts()
      }
      XCTAssertGreaterThan(counts.largestFromClient, 1400)
      XCTAssertEqual(counts.lost, 0)
    }
  }

  /// The smallest path of IPv6: what is larger than its 1,280 bytes, less the headers of IP and UDP, is lost.
  func testSmallestPath() async throws {
    try await self.withPath(.init(largest: 1280 - 48)) { path in
      try await Self.makeCalls(path.client, "1280 bytes")
      let end = ContinuousClock.now + .seconds(30)
      while try await path.proxy.counts().lost == 0, ContinuousClock.now < end {
        try await Self.makeCalls(path.client, "1280 bytes")
      }
      let counts = try await path.proxy.counts()
      XCTAssertGreaterThan(counts.lost, 0)
      let large = await path.get("/script/size/500000")
      XCTAssertEqual(large.byteCount, 500_000, "\(String(describing: large.failure))")
    }
  }

  func testAllAtTheSameTime() async throws {
    let conditions = UDPProxy.Conditions(
      lost: 3,
      doubled: 5,
      reordered: 10,
      garbage: 5,
      delay: .milliseconds(10),
      largest: 1280 - 48
    )
    try await self.withPath(to: .retry, seed: 7, conditions) { path in
      try await Self.makeCalls(path.client, "all")
    }
  }

  // MARK: Paths that end

  /// The server is out of reach for a while that is shorter than the configuration's limit.
  func testPathThatIsGoneForAWhile() async throws {
    try await self.withPath { path in
      try await Self.converse(path.client, "gone for a while") { index in
        guard index == 5 else { return }
        try await path.proxy.set { $0.isBlack = true }
        Task {
          try await Task.sleep(for: .milliseconds(400))
          try await path.proxy.set { $0.isBlack = false }
        }
      }
    }
  }

  /// A stream that the client only reads: that the path is gone shows by the pings.
  func testPathThatGoesBlackDuringAStream() async throws {
    try await self.withPath(
      change: {
        $0.timeouts.unacknowledged = .seconds(2)
        $0.http3 = .alone(.init(pingInterval: .milliseconds(100)))
      }
    ) { path in
      let stream = path.client.serverStream(
        TestMethods.count,
        .with {
          $0.instruction.messageCount = 100_000
          $0.instruction.messageDelayMs = 5
        }
      )
      var count = 0
      do {
        for try await _ in stream.messages {
          count += 1
          if count == 10 { try await path.proxy.set { $0.isBlack = true } }
        }
        XCTFail("the stream has ended")
      } catch let error as ConnectError {
        XCTAssertEqual(error.code, .unavailable)
        XCTAssertEqual(
          error.message,
          """
          the HTTP/3 connection broke: https://localhost:\(path.proxy.port) has acknowledged nothing for 2.0 seconds
          """
        )
      }
      XCTAssertGreaterThanOrEqual(count, 10)
      try await path.proxy.set { $0.isBlack = false }
      try await self.makeCallsUntilOneSucceeds(path)
    }
  }

  /// Another server has the address, which knows nothing of the connection and says nothing to it.
  func testServerThatIsRestarted() async throws {
    let next = try await PythonHTTP3Server()
    try await self.withPath(
      trusting: next.authority,
      change: { $0.timeouts.unacknowledged = .seconds(2) }
    ) { path in
      let first = await path.get("/script/size/1")
      XCTAssertEqual(first.text, "x", "\(String(describing: first.failure))")
      try await path.proxy.replaceServer(port: next.port(.aioquic))
      let lost = await path.get("/script/size/1")
      XCTAssertEqual(lost.failure?.error.code, .unavailable)
      XCTAssertEqual(lost.failure?.isUnprocessed, false)
      let record = await path.get("/script/size/1")
      XCTAssertEqual(record.text, "x", "\(String(describing: record.failure))")
      XCTAssertEqual(record.info?.isReused, false)
    }
  }

  /// A NAT that gives the client another port, as it does after some silence (RFC 9000, section 9.3.3).
  func testClientWhoseAddressChanges() async throws {
    try await self.withPath { path in
      try await Self.converse(path.client, "rebinding") { index in
        if index % 5 == 4 { try await path.proxy.rebind() }
      }
      let record = await path.get("/script/size/500000")
      XCTAssertEqual(record.byteCount, 500_000, "\(String(describing: record.failure))")
      XCTAssertEqual(record.info?.isReused, true)
    }
  }

  // MARK: Early data

  /// Calls that start connections with early data, over a path that loses, repeats and reorders datagrams.
  func testEarlyDataOverABadPath() async throws {
    let conditions = UDPProxy.Conditions(lost: 5, doubled: 10, reordered: 10)
    try await self.withPath(conditions, change: { $0.http3 = .alone(.init(usesEarlyData: true)) }) { path in
      for round in 0..<5 {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for index in 0..<Int32(10) {
            group.addTask {
              let lookup = await path.client.unary(TestMethods.lookup, .with { $0.key = "\(index)" })
              XCTAssertEqual(
                lookup.message?.value,
                "value of \(index)",
                "\(String(describing: lookup.error))"
              )
              let echo = await path.client.unary(TestMethods.echo, .with { $0.payload.small = index })
              XCTAssertEqual(
                echo.message?.payload.small,
                index,
                "\(round): \(String(describing: echo.error))"
              )
            }
          }
          group.addTask { try await Self.converse(path.client, "early data") }
          try await group.waitForAll()
        }
        _ = await path.get("/script/close/0x100")
      }
    }
  }

  /// The server is out of reach when a connection begins with early data: the calls are sent again on the next one.
  func testEarlyDataThatNobodyAnswers() async throws {
    try await self.withPath(change: { $0.http3 = .alone(.init(usesEarlyData: true)) }) { path in
      _ = await path.get("/script/close/0x100")
      try await path.proxy.set { $0.isBlack = true }
      async let lookup = path.client.unary(TestMethods.lookup, .with { $0.key = "it" })
      async let echo = path.client.unary(TestMethods.echo, .with { $0.payload.small = 7 })
      // The first connection is given up after 3 seconds.
      try await Task.sleep(for: .seconds(4))
      try await path.proxy.set { $0.isBlack = false }
      let (found, answer) = await (lookup, echo)
      XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
      XCTAssertEqual(answer.message?.payload.small, 7, "\(String(describing: answer.error))")
    }
  }

  // MARK: Silence

  /// Both sides forget a connection without calls, so that the next call takes a new one.
  func testIdleTimeout() async throws {
    try await self.withPath(to: .brief) { path in
      let first = await path.get("/script/size/1")
      XCTAssertEqual(first.text, "x", "\(String(describing: first.failure))")
      // The timeout is a second, or more on a path that seems slow (RFC 9000, section 10.1).
      var isReused: Bool?
      for seconds in 1...8 where isReused != false {
        try await Task.sleep(for: .milliseconds(500 + 1_000 * seconds))
        let next = await path.get("/script/size/1")
        XCTAssertEqual(next.text, "x", "\(String(describing: next.failure))")
        isReused = next.info?.isReused
      }
      XCTAssertEqual(isReused, false)
    }
  }

  // MARK: Servers that go away

  /// The server goes away among many calls, on a path that loses datagrams: no call fails.
  func testGoAwayAmongManyCalls() async throws {
    try await self.withPath(seed: 3, .init(lost: 3)) { path in
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<Int32(200) {
          group.addTask {
            let response = await path.client.unary(TestMethods.echo, .with { $0.payload.small = index })
            XCTAssertEqual(response.message?.payload.small, index, "\(String(describing: response.error))")
          }
        }
        group.addTask {
          let record = await path.get("/script/goaway")
          XCTAssertEqual(record.text, "last", "\(String(describing: record.failure))")
        }
      }
    }
  }

  /// Between attempts to connect, calls fail at once.
  private func makeCallsUntilOneSucceeds(_ path: Path) async throws {
    let end = ContinuousClock.now + .seconds(30)
    var record = await path.get("/script/size/1")
    while record.failure != nil, ContinuousClock.now < end {
      XCTAssertEqual(record.failure?.error.code, .unavailable)
      try await Task.sleep(for: .milliseconds(20))
      record = await path.get("/script/size/1")
    }
    XCTAssertEqual(record.text, "x", "\(String(describing: record.failure))")
    XCTAssertEqual(record.info?.isReused, false)
  }
}
