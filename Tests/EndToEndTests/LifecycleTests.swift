internal import Connect
internal import ConnectLifecycle
internal import ConnectNIO
internal import Glibc
internal import Logging
internal import LoopbackServer
internal import ServiceLifecycle
internal import TestSupport
import XCTest

/// The client as one of the services of a program.
final class LifecycleTests: XCTestCase {
  /// A program with a client, other services, and a call under way to `/held`, which answers once it is released.
  private struct Scene {
    let embedded: EmbeddedServer
    let group: ServiceGroup
    /// `group.run()`, which has begun.
    let run: Task<Void, any Error>
    let release: Counter
    /// Of the call.
    let responses: Recorder<ResponseMessage<EchoResponse>>

    /// Waits for the end of the group, and of the client's connections.
    func end() async throws {
      let run = self.run
      try await bounded("the end of the group") { try await run.value }
      try await self.embedded.server.journal.wait { $0.openConnections == 0 }
    }
  }

  private func withScene(
    _ version: Version = .http2,
    within limit: Duration = .seconds(600),
    maximumShutdown: Duration? = nil,
    other services: (ProtocolClient) -> [any Service] = { _ in [] },
    _ body: (Scene) async throws -> Void
  ) async throws {
    try await EmbeddedServer.run(version) { embedded in
      let release = Counter()
      Self.hold("/held", on: embedded.server, until: release)
      var configuration = ServiceGroupConfiguration(
        services: [HTTPClientService(embedded.httpClient, within: limit)] + services(embedded.client),
        logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
      )
      configuration.maximumGracefulShutdownDuration = maximumShutdown
      let group = ServiceGroup(configuration: configuration)
      let run = Task { try await group.run() }
      defer { run.cancel() }
      let responses = Recorder<ResponseMessage<EchoResponse>>()
      embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) }
      _ = try await embedded.server.request(to: "/held")
      try await body(
        Scene(embedded: embedded, group: group, run: run, release: release, responses: responses)
      )
    }
  }

  private static func hold(_ path: String, on server: LoopbackServer, until release: Counter) {
    server.onRaw(path) { request, responder in
      _ = try await request.body()
      while release.value == 0 { try await responder.sleep(.milliseconds(2)) }
      try await responder.respond(headers: ["content-type": "application/proto"])
    }
  }

  /// Returns once the client refuses calls, since its shutdown has begun.
  private func waitForShutdown(of client: ProtocolClient) async throws {
    try await bounded("the beginning of the shutdown") {
      var error: ConnectError?
      while error == nil { error = await client.unary(TestMethods.echo, EchoRequest()).error }
      ExpectedError(.unavailable, "shut down").check(error, "during the shutdown")
    }
  }

  func testCallUnderWayFinishes() async throws {
    for version in Version.allCases {
      try await self.withScene(version) { scene in
        await scene.group.triggerGracefulShutdown()
        try await self.waitForShutdown(of: scene.embedded.client)
        XCTAssertTrue(scene.responses.values.isEmpty, version.rawValue)
        scene.release.increment()
        try await scene.end()
        let codes = try await scene.responses.wait(for: 1).map(\.code)
        XCTAssertEqual(codes, [.ok], version.rawValue)
        XCTAssertEqual(scene.embedded.server.journal.snapshot.resetCount, 0, version.rawValue)
      }
    }
  }

  func testCallBeyondTheLimitFails() async throws {
    for version in Version.allCases {
      try await self.withScene(version, within: .milliseconds(50)) { scene in
        await scene.group.triggerGracefulShutdown()
        try await scene.end()
        let response = try await scene.responses.wait(for: 1)[0]
        ExpectedError(.unavailable, "shut down").check(response.error, version.rawValue)
      }
    }
  }

  /// Cancellation waits for nothing, and is no error of this service.
  func testCancellation() async throws {
    try await self.withScene { scene in
      scene.run.cancel()
      try await scene.end()
      let response = try await scene.responses.wait(for: 1)[0]
      ExpectedError(.unavailable, "shut down").check(response.error, "the call")
    }
  }

  func testCancellationDuringTheShutdown() async throws {
    try await self.withScene { scene in
      await scene.group.triggerGracefulShutdown()
      try await self.waitForShutdown(of: scene.embedded.client)
      XCTAssertTrue(scene.responses.values.isEmpty)
      scene.run.cancel()
      try await scene.end()
      let response = try await scene.responses.wait(for: 1)[0]
      ExpectedError(.unavailable, "shut down").check(response.error, "the call")
    }
  }

  /// The group's own limit cancels its services.
  func testLimitOfTheGroup() async throws {
    try await self.withScene(maximumShutdown: .milliseconds(50)) { scene in
      await scene.group.triggerGracefulShutdown()
      try await scene.end()
      let response = try await scene.responses.wait(for: 1)[0]
      ExpectedError(.unavailable, "shut down").check(response.error, "the call")
    }
  }

  /// A service that fails ends the group with its error, and the client's calls with the group.
  func testFailureOfAnotherService() async throws {
    struct OtherFailure: Error {}
    struct Failing: Service {
      let signal: Counter
      func run() async throws {
        while self.signal.value == 0 { try await Task.sleep(for: .milliseconds(2)) }
        throw OtherFailure()
      }
    }
    let signal = Counter()
    try await self.withScene(other: { _ in [Failing(signal: signal)] }) { scene in
      signal.increment()
      do {
        try await scene.end()
        XCTFail("the group has not failed")
      } catch is OtherFailure {
        let response = try await scene.responses.wait(for: 1)[0]
        ExpectedError(.unavailable, "shut down").check(response.error, "the call")
      }
    }
  }

  /// Services behind the client in the list are shut down before it, and can still make calls then.
  func testServicesBehindTheClientEndBeforeIt() async throws {
    struct LastWords: Service {
      let client: ProtocolClient
      let codes: Recorder<Code>
      func run() async throws {
        try await gracefulShutdown()
        self.codes.record(await self.client.unary(TestMethods.echo, EchoRequest()).code)
      }
    }
    let codes = Recorder<Code>()
    try await self.withScene(other: { [LastWords(client: $0, codes: codes)] }) { scene in
      await scene.group.triggerGracefulShutdown()
      try await codes.wait(for: 1)
      XCTAssertEqual(codes.values, [.ok])
      scene.release.increment()
      try await scene.end()
      let response = try await scene.responses.wait(for: 1)[0]
      XCTAssertEqual(response.code, .ok)
    }
  }

  /// After a shutdown and the end of the event loops, late calls of all kinds fail at once, and calls that interceptors hold
  /// end. NIO traps if anything touches a loop that has ended.
  func testLateCalls() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/late") { request, responder in
      _ = try await request.body()
      try await responder.respond(headers: ["content-type": "application/proto"])
    }
    let program = try ChildProcess(
      product: "ServiceProgram",
      arguments: [server.url, "/late", "--late"],
      environment: ["SWIFTNIO_STRICT": "1"]
    )
    let status = try await program.exitStatus(within: patience)
    let output = String(decoding: try await program.readAll(), as: UTF8.self)
    XCTAssertEqual(status, 0, program.errorOutput)
    let round = """
      before: ok
      unary: unavailable
      server stream: unavailable
      bidirectional: unavailable
      on the client's executor: unavailable
      another client: unavailable
      another host: unavailable
      snapshots: STATES
      expired: deadline_exceeded
      held: unavailable

      """
    let expected = ["SHUTDOWN", "SHUTDOWN SHUTDOWN"].map { round.replacing("STATES", with: $0) }.joined()
    XCTAssertEqual(output, expected + "ended\n")
    XCTAssertFalse(program.errorOutput.contains("ERROR"), program.errorOutput)
    await server.stop()
  }

  /// A program of its own that gets SIGTERM while it makes a call.
  func testSignal() async throws {
    let server = try await LoopbackServer.start()
    let release = Counter()
    Self.hold("/held", on: server, until: release)
    let program = try ChildProcess(
      product: "ServiceProgram",
      arguments: [server.url, "/held", "--until-signal"]
    )
    _ = try await server.request(to: "/held", timeout: patience)
    program.signal(SIGTERM)
    try await eventually("the shutdown has begun") { program.errorOutput.contains("stopping") }
    release.increment()
    let status = try await program.exitStatus(within: patience)
    XCTAssertEqual(status, 0, program.errorOutput)
    let output = String(decoding: try await program.readAll(), as: UTF8.self)
    XCTAssertEqual(output, "ok\nended\n")
    try await server.journal.wait { $0.openConnections == 0 }
    await server.stop()
  }
}
