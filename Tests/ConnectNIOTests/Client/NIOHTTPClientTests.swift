import Connect
import ConnectChannels
import ConnectNIO
import Dispatch
import LoopbackServer
import NIOCore
import NIOPosix
import Synchronization
import XCTest

final class NIOHTTPClientTests: XCTestCase {
  // MARK: Endpoints

  func testOneEndpointForEachOriginAndLoop() async throws {
    let client = NIOHTTPClient()
    let origin = Origin(scheme: .http, host: "127.0.0.1", port: 1)
    let first = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    let same = try client.endpoint(for: origin, on: first.executor, requiresHTTP2: false)
    XCTAssertTrue(first === same)
    let elsewhere = Origin(scheme: .http, host: "127.0.0.1", port: 2)
    let other = try client.endpoint(for: elsewhere, on: first.executor, requiresHTTP2: false)
    XCTAssertFalse(first === other)
    XCTAssertTrue(first.executor === other.executor)
    await client.shutdown()
  }

  func testEndpointsThatRequireHTTP2() async throws {
    let origin = Origin(scheme: .http, host: "127.0.0.1", port: 1)
    for (version, isShared) in [
      (NIOHTTPClient.Configuration.HTTPVersion.automatic, false), (.http2Only, true),
    ] {
      let client = NIOHTTPClient(configuration: .init(version: version))
      let any = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
      let http2 = try client.endpoint(for: origin, on: nil, requiresHTTP2: true)
      let same = try client.endpoint(for: origin, on: http2.executor, requiresHTTP2: true)
      XCTAssertTrue(http2 === same)
      XCTAssertEqual(any === http2, isShared)
      await client.shutdown()
    }
    let client = NIOHTTPClient(configuration: .init(version: .http1Only))
    XCTAssertThrowsError(try client.endpoint(for: origin, on: nil, requiresHTTP2: true)) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .failedPrecondition)
      XCTAssertTrue((error as? ConnectError)?.message?.contains("HTTP/2") == true)
    }
    await client.shutdown()
  }

  /// In cleartext, HTTP/2 by prior knowledge, and beside it HTTP/1.1 for calls that do not need more.
  func testRequiredHTTP2InCleartext() async throws {
    try await withTemporaryFolder { folder in
      let servers = [
        try await LoopbackServer.start(.plaintext),
        try await LoopbackServer.start(.unixSocket("\(folder)/socket")),
      ]
      let origins = [
        Origin(scheme: .http, host: "127.0.0.1", port: servers[0].port),
        Origin(scheme: .unix, host: "\(folder)/socket", port: 0),
      ]
      for (server, origin) in zip(servers, origins) {
        server.onRaw("/test") { request, responder in try await responder.respond(text: "ok") }
        let client = try TestClient(origin, requiresHTTP2: true)
        let call = client.call().start()
        _ = try await call.response()
        let info = try await call.connectionInfo()
        XCTAssertEqual(info?.version, .http2)
        let other = try client.client.endpoint(
          for: origin,
          on: client.endpoint.executor,
          requiresHTTP2: false
        )
        let otherCall = TestCall(other, on: client.eventLoop).start()
        _ = try await otherCall.response()
        let otherInfo = try await otherCall.connectionInfo()
        XCTAssertEqual(otherInfo?.version, .http1)
        await client.shutdown()
        await server.stop()
      }
    }
  }

  func testImpossibleOriginsAndExecutors() async throws {
    final class ForeignExecutor: CallExecutor {
      var now: Duration { .zero }
      var isCurrent: Bool { false }
      func execute(_ work: @escaping @Sendable () -> Void) {}
      func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
        fatalError("not used")
      }
    }
    let client = NIOHTTPClient()
    let impossible = [
      Origin(scheme: .http, host: "", port: 80), Origin(scheme: .http, host: "a b", port: 80),
      Origin(scheme: .https, host: "a", port: 0), Origin(scheme: .https, host: "a", port: 65_536),
      Origin(scheme: .unix, host: "", port: 0),
      Origin(scheme: .unix, host: "/" + String(repeating: "x", count: 107), port: 0),
    ]
    for origin in impossible {
      XCTAssertThrowsError(
        try client.endpoint(for: origin, on: nil, requiresHTTP2: false),
        "\(origin)"
      ) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
      }
    }
    let origin = Origin(scheme: .http, host: "a", port: 80)
    XCTAssertThrowsError(
      try client.endpoint(for: origin, on: ForeignExecutor(), requiresHTTP2: false)
    ) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .invalidArgument)
    }
    await client.shutdown()
  }

  // MARK: Connecting

  func testConnectionRefused() async throws {
    let server = try await RawServer { _ in }
    await server.close()
    let client = try TestClient(server)
    let calls = (0..<5).map { _ in client.call().start() }
    for call in calls {
      let failure = try await call.failure()
      XCTAssertEqual(failure.error.code, .unavailable)
      XCTAssertFalse(failure.isUnprocessed)
      let message = failure.error.message ?? ""
      XCTAssertTrue(message.contains("127.0.0.1:\(server.port)") && message.contains("refused"), message)
      XCTAssertNotNil(failure.error.exception)
    }
    await client.shutdown()
  }

  func testUnknownHost() async throws {
    let client = try TestClient(Origin(scheme: .http, host: "does-not-exist.invalid", port: 80))
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    XCTAssertTrue(failure.error.message?.contains("does-not-exist.invalid") == true, "\(failure.error)")
    await client.shutdown()
  }

  func testUnixDomainSocket() async throws {
    try await withTemporaryFolder { folder in
      let path = "\(folder)/socket"
      let server = try await RawServer(unixPath: path) { connection in
        while let request = connection.takeRequest() {
          connection.respond(request.head.contains("host: localhost\r\n") ? "ok" : request.head)
        }
      }
      let origin = Origin(scheme: .unix, host: path, port: 0)
      let client = try TestClient(origin)
      for _ in 0..<2 {
        let text = try await client.call().start().response().text
        XCTAssertEqual(text, "ok")
      }
      XCTAssertEqual(server.accepted, 1)
      await client.shutdown()
      await server.close()

      let missing = try TestClient(Origin(scheme: .unix, host: "\(folder)/missing", port: 0))
      let failure = try await missing.call().start().failure()
      XCTAssertEqual(failure.error.code, .unavailable)
      XCTAssertTrue(failure.error.message?.contains("\(folder)/missing") == true, "\(failure.error)")
      await missing.shutdown()
    }
  }

  /// Linux takes paths of up to 107 bytes, which is more than NIO's own function takes.
  func testLongestPathsOfUnixDomainSockets() async throws {
    try await withTemporaryFolder { folder in
      for count in [103, 104, 107] {
        let path = "\(folder)/" + String(repeating: "s", count: count - folder.utf8.count - 1)
        XCTAssertEqual(path.utf8.count, count)
        let server = try await RawServer(unixPath: path) { connection in
          while connection.takeRequest() != nil { connection.respond("ok") }
        }
        let client = try TestClient(try Origin("unix:\(path)"))
        let call = client.call().start()
        let text = try await call.response().text
        XCTAssertEqual(text, "ok")
        let address = try await call.connectionInfo()?.remoteAddress
        XCTAssertEqual(address, path)
        await client.shutdown()
        await server.close()
      }
    }
    let tooLong = EndpointAddress.unix(path: "/" + String(repeating: "s", count: 107))
    XCTAssertThrowsError(try SocketAddress(tooLong)) {
      XCTAssertTrue("\($0)".contains("1 to 107 bytes"), "\($0)")
    }
    XCTAssertThrowsError(try SocketAddress(EndpointAddress.unix(path: "")))
    XCTAssertThrowsError(try SocketAddress(EndpointAddress.unix(path: "/a\0b")))
  }

  func testIPv6Literal() async throws {
    // Nobody listens on it, with IPv6 or without.
    let group = MultiThreadedEventLoopGroup.singleton
    let channel = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
    let port = channel.localAddress?.port ?? 0
    try await channel.close().get()
    let client = try TestClient(Origin(scheme: .http, host: "::1", port: port))
    let failure = try await client.call().start().failure()
    XCTAssertTrue(failure.error.message?.contains("http://[::1]:\(port)") == true, "\(failure.error)")
    await client.shutdown()
  }

  // MARK: Limits

  func testManyCallsShareTheConnections() async throws {
    let server = try await RawServer { connection in
      while let request = connection.takeRequest() { connection.respond(request.body) }
    }
    let client = try TestClient(server, .init(limits: .init(http1ConnectionsPerAddress: 7)))
    let calls = (0..<2_000).map { index in
      client.call().start(body: .complete(ByteBuffer(string: "\(index)")))
    }
    for (index, call) in calls.enumerated() {
      let text = try await call.response().text
      XCTAssertEqual(text, "\(index)")
    }
    XCTAssertEqual(server.accepted, 7)
    await client.shutdown()
    await server.close()
  }

  func testQueueLimitNamesTheLimit() async throws {
    let server = try await RawServer { _ in }
    let client = try TestClient(
      server,
      .init(limits: .init(http1ConnectionsPerAddress: 1, waitingCalls: 2))
    )
    let first = client.call().start()
    try await first.hasStarted()
    let waiting = (0..<2).map { _ in client.call().start() }
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .resourceExhausted)
    let message = failure.error.message ?? ""
    XCTAssertTrue(message.hasPrefix("2 calls already wait for a connection to http://127.0.0.1:"), message)
    XCTAssertTrue(message.contains(": waitingCalls is 2, which is the limit; see "), message)
    // A place is free again once one gives up.
    waiting[0].cancel()
    let last = client.call().start()
    last.cancel()
    waiting[1].cancel()
    first.cancel()
    await client.shutdown()
    await server.close()
  }

  /// With no queue, calls run on the connections that there may be; one more fails at once.
  func testCallsRunWithoutAQueue() async throws {
    let server = try await RawServer { connection in
      while let request = connection.takeRequest() {
        if request.body != "held" { connection.respond(request.body) }
      }
    }
    let limits = NIOHTTPClient.Configuration.Limits(http1ConnectionsPerAddress: 2, waitingCalls: 0)
    let client = try TestClient(server, .init(limits: limits))
    let start = { client.call().start(body: .complete(ByteBuffer(string: $0))) }
    for index in 0..<3 {
      let text = try await start("\(index)").response().text
      XCTAssertEqual(text, "\(index)")
    }
    let held = ["held", "held"].map(start)
    for call in held { try await call.hasStarted() }
    let failure = try await start("more").failure()
    XCTAssertEqual(failure.error.code, .resourceExhausted)
    let message = failure.error.message ?? ""
    XCTAssertTrue(message.hasPrefix("no call may wait for a connection to http://127.0.0.1:"), message)
    XCTAssertTrue(message.contains(": waitingCalls is 0, which is the limit; see "), message)
    for call in held { call.cancel() }
    await client.shutdown()
    await server.close()
  }

  func testWaitingStreamKeepsWhatIsWritten() async throws {
    let server = try await RawServer { connection in
      while connection.text.hasSuffix("0\r\n\r\n") {
        let body = connection.text.components(separatedBy: "\r\n\r\n")[1]
        connection.received.clear()
        connection.respond(body)
      }
    }
    let client = try TestClient(server)
    // Everything is written before there is a connection.
    let call = client.call()
    try await client.eventLoop.submit {
      call.start(body: .streamed)
      call.write("ab")
      call.write("c")
      call.finish()
    }.get()
    let text = try await call.response().text
    XCTAssertEqual(text, "2\r\nab\r\n1\r\nc\r\n0")
    await client.shutdown()
    await server.close()
  }

  func testIdleConnectionIsClosed() async throws {
    let server = try await RawServer { connection in
      while connection.takeRequest() != nil { connection.respond() }
    }
    let client = try TestClient(server, .init(timeouts: .init(idle: .milliseconds(30))))
    _ = try await client.call().start().response()
    try await eventually("closed") { server.open == 0 }
    let text = try await client.call().start().response().text
    XCTAssertEqual(text, "pong")
    XCTAssertEqual(server.accepted, 2)
    await client.shutdown()
    await server.close()
  }

  // MARK: The end

  func testShutdownLetsCallsFinish() async throws {
    // The connections whose requests wait; nil once the client is shutting down, and the server answers at once.
    let unanswered = Mutex<[any Channel]?>([])
    let answer: @Sendable (any Channel) -> Void = { channel in
      let text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
      channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
    }
    let server = try await RawServer { connection in
      guard connection.takeRequest() != nil else { return }
      let channel = connection.channel
      let waits = unanswered.withLock { $0?.append(channel) != nil }
      if !waits { answer(channel) }
    }
    let client = try TestClient(server, .init(limits: .init(http1ConnectionsPerAddress: 1)))
    let running = client.call().start()
    try await running.hasStarted()
    let waiting = client.call().start()
    async let end: Void = client.client.shutdown()
    // The shutdown has begun once a new call is refused. Calls before wait like the second one.
    final class Refusal: Sendable {
      let error = Mutex<ConnectError?>(nil)
    }
    let refusal = Refusal()
    try await eventually("refused") {
      let late = client.call().start()
      Task {
        if case .failure(let failure) = try await late.outcome() {
          refusal.error.withLock { $0 = failure.error }
        }
      }
      return refusal.error.withLock { $0 != nil }
    }
    let refused = refusal.error.withLock { $0 }
    XCTAssertEqual(refused?.code, .unavailable)
    XCTAssertTrue(refused?.message?.contains("shut down") == true)
    for channel in unanswered.withLock({ $0.take() }) ?? [] { answer(channel) }
    let first = try await running.response().text
    let second = try await waiting.response().text
    XCTAssertEqual([first, second], ["ok", "ok"])
    await end
    try await eventually("closed") { server.open == 0 }
    // There is no new endpoint, either.
    XCTAssertThrowsError(
      try client.client.endpoint(
        for: Origin(scheme: .http, host: "127.0.0.1", port: 9),
        on: client.endpoint.executor,
        requiresHTTP2: false
      )
    ) { XCTAssertTrue("\($0)".contains("shut down")) }
    await client.client.shutdown()
    await server.close()
  }

  func testShutdownFailsWhatIsLeftAtItsLimit() async throws {
    let server = try await RawServer { _ in }
    let client = try TestClient(server, .init(limits: .init(http1ConnectionsPerAddress: 1)))
    let running = client.call().start()
    try await running.hasStarted()
    let waiting = client.call().start()
    await client.client.shutdown(within: .milliseconds(30))
    for call in [running, waiting] {
      let failure = try await call.failure()
      XCTAssertEqual(failure.error.code, .unavailable)
      XCTAssertTrue(failure.error.message?.contains("shut down") == true, "\(failure.error)")
    }
    try await eventually("closed") { server.open == 0 }
    await server.close()
  }

  func testShutdownWhileConnecting() async throws {
    // Accepts TCP and never answers the TLS handshake.
    let server = try await RawServer { _ in }
    let client = try TestClient(Origin(scheme: .https, host: "127.0.0.1", port: server.port))
    let call = client.call().start()
    try await eventually("connected") { server.accepted == 1 }
    await client.client.shutdown(within: .zero)
    let failure = try await call.failure()
    XCTAssertTrue(failure.error.message?.contains("shut down") == true, "\(failure.error)")
    // At once, and not after the connect timeout of ten seconds.
    try await eventually("closed") { server.open == 0 }
    await server.close()
  }

  func testShutdownOfAnUnusedClient() async throws {
    await NIOHTTPClient().shutdown()
    let client = try TestClient(Origin(scheme: .http, host: "127.0.0.1", port: 9))
    await client.client.shutdown()
  }

  func testDroppedClientClosesItsConnections() async throws {
    let server = try await RawServer { connection in
      while connection.takeRequest() != nil { connection.respond() }
    }
    weak var dropped: (any HTTPEndpoint)?
    func use() async throws {
      let client = try TestClient(server)
      _ = try await client.call().start().response()
      XCTAssertEqual(server.open, 1)
      dropped = client.endpoint
    }
    try await use()
    try await eventually("closed") { server.open == 0 }
    try await eventually("freed") { dropped == nil }
    await server.close()
  }

  // MARK: A group of the user's

  /// Origins take turns on the loops, and each is served on its own, also when calls for all come at once.
  func testAGroupOfSeveralLoops() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 3)
    let client = NIOHTTPClient(eventLoopGroup: group)
    var servers: [RawServer] = []
    for _ in 0..<3 {
      servers.append(
        try await RawServer { connection in
          while let request = connection.takeRequest() { connection.respond(request.body) }
        }
      )
    }
    let loops = Array(group.makeIterator())
    let origins = servers.map { Origin(scheme: .http, host: "127.0.0.1", port: $0.port) }
    let endpoints = try origins.map { try client.endpoint(for: $0, on: nil, requiresHTTP2: false) }
    XCTAssertEqual(Set(endpoints.map { ObjectIdentifier($0.executor) }).count, 3)
    // A way to another's origin, on the same executor as a call that is under way.
    let crossing = try client.endpoint(for: origins[1], on: endpoints[0].executor, requiresHTTP2: false)
    XCTAssertTrue(crossing.executor === endpoints[0].executor)
    XCTAssertFalse(crossing === endpoints[1])

    var calls: [(text: String, call: TestCall)] = []
    for (index, endpoint) in (endpoints + [crossing]).enumerated() {
      let loop = try XCTUnwrap(loops.first { $0.isLoop(of: endpoint.executor) })
      for number in 0..<50 {
        let text = "\(index) \(number)"
        let call = TestCall(endpoint, on: loop).start(body: .complete(ByteBuffer(string: text)))
        calls.append((text, call))
      }
    }
    for (text, call) in calls {
      let answer = try await call.response().text
      XCTAssertEqual(answer, text)
    }
    await client.shutdown()
    try await group.shutdownGracefully()
    for server in servers { await server.close() }
  }

  /// While the group is asked for a loop, it gets an endpoint of the same origin itself: there is only one.
  func testAGroupThatCallsTheClient() async throws {
    let loops = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    let group = CallingGroup(loops)
    let client = NIOHTTPClient(eventLoopGroup: group)
    let origin = Origin(scheme: .http, host: "127.0.0.1", port: 1)
    let endpoints = Mutex<[any HTTPEndpoint]>([])
    group.beforeNext { [weak client] in
      guard let endpoint = try? client?.endpoint(for: origin, on: nil, requiresHTTP2: false) else { return }
      endpoints.withLock { $0.append(endpoint) }
    }
    let first = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    let second = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    let inner = endpoints.withLock { $0 }
    XCTAssertEqual(inner.count, 1)
    XCTAssertTrue(inner.allSatisfy { $0 === first })
    XCTAssertTrue(first === second)
    // The outer question gave another loop, which is not used.
    XCTAssertEqual(group.asked, 2)
    await client.shutdown()
    try await loops.shutdownGracefully()
  }

  /// Calls from several threads at once get one endpoint, whichever loops the group gives them.
  func testCallsAtOnceShareAnEndpoint() async throws {
    let loops = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    for port in 1...200 {
      let client = NIOHTTPClient(eventLoopGroup: loops)
      let origin = Origin(scheme: .http, host: "127.0.0.1", port: port)
      let endpoints = try await withThrowingTaskGroup(of: (any HTTPEndpoint).self) { tasks in
        for _ in 0..<4 {
          tasks.addTask { try client.endpoint(for: origin, on: nil, requiresHTTP2: false) }
        }
        return try await tasks.reduce(into: []) { $0.append($1) }
      }
      XCTAssertEqual(Set(endpoints.map { ObjectIdentifier($0) }).count, 1)
      await client.shutdown()
    }
    try await loops.shutdownGracefully()
  }

  /// Against the rule, but no trap: the client, its endpoint and its connections outlive their loop.
  func testAGroupThatIsShutDownFirst() async throws {
    let server = try await RawServer { connection in
      while connection.takeRequest() != nil { connection.respond() }
    }
    weak var dropped: (any HTTPEndpoint)?
    func use() async throws {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let client = NIOHTTPClient(eventLoopGroup: group)
      let origin = Origin(scheme: .http, host: "127.0.0.1", port: server.port)
      let endpoint = try client.endpoint(for: origin, on: nil, requiresHTTP2: false)
      dropped = endpoint
      let call = TestCall(endpoint, on: group.next())
      _ = try await call.start().response()
      try await group.shutdownGracefully()
    }
    try await use()
    try await eventually("closed") { server.open == 0 }
    XCTAssertNil(dropped)
    await server.close()
  }
}

extension EventLoop {
  fileprivate func isLoop(of executor: any CallExecutor) -> Bool {
    (try? self.submit { executor.isCurrent }.wait()) ?? false
  }
}

/// A group that runs a function when it is asked for a loop.
private final class CallingGroup: EventLoopGroup {
  private struct State {
    var beforeNext: (@Sendable () -> Void)?
    var asked = 0
  }

  private let loops: MultiThreadedEventLoopGroup
  private let state = Mutex(State())

  init(_ loops: MultiThreadedEventLoopGroup) {
    self.loops = loops
  }

  /// How often a loop was asked for.
  var asked: Int { self.state.withLock { $0.asked } }

  /// Runs `work` once, when a loop is asked for next.
  func beforeNext(_ work: @escaping @Sendable () -> Void) {
    self.state.withLock { $0.beforeNext = work }
  }

  func next() -> any EventLoop {
    let work = self.state.withLock { state in
      state.asked += 1
      defer { state.beforeNext = nil }
      return state.beforeNext
    }
    work?()
    return self.loops.next()
  }

  func makeIterator() -> EventLoopIterator { self.loops.makeIterator() }

  func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
    self.loops.shutdownGracefully(queue: queue, callback)
  }
}
