internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

/// Clients whose calls live on several event loops.
final class EventLoopsTests: XCTestCase {
  /// A server whose `/held` answers when it is told to, and a client on `count` event loops of a group of 3.
  private func run(
    _ count: Int,
    configure: (inout NIOHTTPClient.Configuration) -> Void = { _ in },
    _ body: (EmbeddedServer, _ release: Counter) async throws -> Void
  ) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 3)
    let server = try await LoopbackServer.start(.plaintext)
    let release = Counter()
    server.onRaw("/held") { request, responder in
      _ = try await request.body()
      while release.value == 0 { try await responder.sleep(.milliseconds(2)) }
      try await responder.respond(headers: ["content-type": "application/proto"])
    }
    var configuration = Version.http2.configuration
    configuration.eventLoops = count
    configure(&configuration)
    let httpClient = NIOHTTPClient(configuration: configuration, eventLoopGroup: group)
    let client = ProtocolClient(httpClient: httpClient, config: .forTests(host: server.url))
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await body(EmbeddedServer(server: server, httpClient: httpClient, client: client), release)
      )
    } catch {
      result = .failure(error)
    }
    release.increment()
    await httpClient.shutdown(within: .seconds(10))
    await server.stop()
    try await group.shutdownGracefully()
    try result.get()
  }

  private func held(_ count: Int, by client: ProtocolClient) -> Recorder<ResponseMessage<EchoResponse>> {
    let responses = Recorder<ResponseMessage<EchoResponse>>()
    for _ in 0..<count { client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) } }
    return responses
  }

  func testCallsAtTheSameTimeAreSpread() async throws {
    for (asked, expected) in [(0, 1), (1, 1), (2, 2), (3, 3), (100, 3)] {
      try await self.run(asked) { embedded, release in
        let responses = self.held(12, by: embedded.client)
        try await embedded.server.journal.wait { $0.requests.count == 12 }
        XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, expected)
        let snapshots = await embedded.httpClient.snapshots()
        XCTAssertEqual(
          snapshots.map { $0.endpoints.map(\.calls) },
          Array(repeating: [12 / expected], count: expected)
        )
        release.increment()
        try await responses.wait(for: 12)
        XCTAssertEqual(responses.values.filter { $0.code == .ok }.count, 12)
      }
    }
  }

  func testCallsInSequenceNeedOneConnection() async throws {
    try await self.run(3) { embedded, _ in
      for _ in 0..<20 { _ = try await embedded.client.unary(TestMethods.echo, EchoRequest()).get() }
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1)
    }
  }

  /// A task that prefers one of the loops makes its calls there, without a change of thread.
  func testTasksThatPreferALoop() async throws {
    try await self.run(2) { embedded, _ in
      let client = embedded.client
      let executors = embedded.httpClient.executors
      XCTAssertEqual(client.taskExecutors.count, 2)
      for (index, taskExecutor) in client.taskExecutors.enumerated() {
        let isThere = try await Task(executorPreference: taskExecutor) {
          var isThere = true
          for _ in 0..<5 {
            isThere = isThere && executors[index].isCurrent
            _ = try await client.unary(TestMethods.echo, EchoRequest()).get()
          }
          return isThere && executors[index].isCurrent
        }.value
        XCTAssertTrue(isThere)
        XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, index + 1)
      }
    }
  }

  func testConnectingBeforehand() async throws {
    try await self.run(3) { embedded, _ in
      let origin = try Origin(embedded.server.url)
      try embedded.httpClient.connect(to: origin)
      try await embedded.server.journal.wait { $0.openConnections == 3 }
      try await eventually("ready") { try embedded.httpClient.connectivity(of: origin) == .ready }
      let responses = self.held(6, by: embedded.client)
      try await embedded.server.journal.wait { $0.requests.count == 6 }
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 3)
      XCTAssertEqual(responses.values.count, 0)
    }
  }

  /// The state of the first loop is what is shown, wherever the first call was made.
  func testConnectivityIsThatOfTheFirstLoop() async throws {
    try await self.run(2) { embedded, _ in
      let client = embedded.client
      let origin = try Origin(embedded.server.url)
      _ = try await Task(executorPreference: client.taskExecutors[1]) {
        try await client.unary(TestMethods.echo, EchoRequest()).get()
      }.value
      XCTAssertEqual(try embedded.httpClient.connectivity(of: origin), .idle)
      let changes = try embedded.httpClient.connectivityChanges(of: origin)
      _ = try await client.unary(TestMethods.echo, EchoRequest()).get()
      XCTAssertEqual(try embedded.httpClient.connectivity(of: origin), .ready)
      for await state in changes where state == .ready { break }
    }
  }

  /// Names are resolved once for all loops.
  func testOneResolverForAll() async throws {
    let looks = Counter()
    let address = Mutex<String?>(nil)
    let resolver = PollingResolver { _, _, report in
      looks.increment()
      let endpoints = address.withLock { $0 }.flatMap(Endpoint.init).map { [$0] } ?? []
      report(.success(ResolverUpdate(endpoints: endpoints, timeToLive: .seconds(600))))
    }
    try await self.run(3, configure: { $0.channel.resolver = resolver }) { embedded, release in
      let origin = try Origin(embedded.server.url)
      address.withLock { $0 = "127.0.0.1:\(origin.port)" }
      let responses = self.held(6, by: embedded.client)
      try await embedded.server.journal.wait { $0.requests.count == 6 }
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 3)
      XCTAssertEqual(looks.value, 1)
      release.increment()
      try await responses.wait(for: 6)
    }
  }

  /// A client that was dropped closes its connections on all loops.
  func testAClientThatIsDropped() async throws {
    let server = try await LoopbackServer.start(.plaintext)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    func call() async throws {
      var configuration = Version.http2.configuration
      configuration.eventLoops = 2
      let client = ProtocolClient(
        httpClient: NIOHTTPClient(configuration: configuration, eventLoopGroup: group),
        config: .forTests(host: server.url)
      )
      for executor in client.taskExecutors {
        _ = try await Task(executorPreference: executor) {
          try await client.unary(TestMethods.echo, EchoRequest()).get()
        }.value
      }
    }
    try await call()
    XCTAssertEqual(server.journal.snapshot.acceptedConnections, 2)
    try await server.journal.wait { $0.openConnections == 0 }
    await server.stop()
    try await group.shutdownGracefully()
  }
}
